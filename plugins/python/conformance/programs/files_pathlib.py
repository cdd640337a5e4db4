from pathlib import Path, PurePosixPath, PureWindowsPath

root = Path("tree")
(root / "sub" / "deeper").mkdir(parents=True)
(root / "a.txt").write_text("one\ntwo\n")
(root / "sub" / "b.py").write_bytes(b"print()\n")
(root / "sub" / "deeper" / "c.txt").touch()
print(sorted(str(path) for path in root.rglob("*")))
print(sorted(path.name for path in root.glob("**/*.txt")))
print((root / "a.txt").read_text().splitlines(), (root / "a.txt").stat().st_size)
print((root / "a.txt").exists(), (root / "nothing").exists(), root.is_dir())
moved = (root / "a.txt").rename(root / "renamed.txt")
print(moved, moved.suffix, moved.stem, moved.parent, moved.with_suffix(".md"))
moved.unlink()
(root / "nothing").unlink(missing_ok=True)
print(sorted(path.name for path in root.iterdir()))
print(PurePosixPath("/a/b/../c").parts, PureWindowsPath("c:\\x\\y.txt").suffix, Path("a/b").relative_to("a"))
try:
    Path("nope").read_text()
except FileNotFoundError as error:
    print(type(error).__name__, error.filename)
