"""Packs a folder as a release archive or as a container image, with the same bytes for the same files.

    pack.py archive FOLDER RESULT.tar.gz
    pack.py image FOLDER RESULT.tar NAME ARCHITECTURE
    pack.py checksums FOLDER FILE
    pack.py licences RESULT TARGET MANIFEST..
"""

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

#: Names of files with licence texts.
LICENCE = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)

#: The licences of software that is no Rust package.
OTHERS = """Third-party software in rlf-host

The plugin `python` contains CPython and typing-extensions, under the Python Software Foundation License Version 2:
https://docs.python.org/3/license.html. It also contains pydantic, pydantic-core, annotated-types and typing-inspection (MIT),
and the time zones of tzdata (Apache-2.0; the data itself is in the public domain).
Its library and the plugins `javascript` and `reward-sql-result` contain C libraries: wasi-libc (MIT, Apache-2.0), QuickJS (MIT) and
SQLite (public domain). The container image contains the GNU C library (LGPL-2.1-or-later).

The Rust packages follow, and after them their licence texts."""

#: The user that the program runs as in a container, and the folder that belongs to it.
USER, HOME = 65532, "home/rlf"


def entry(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry without what depends on the machine."""
    mine = info.name == HOME or info.name.startswith(HOME + "/")
    info.uid = info.gid = USER if mine else 0
    info.uname = info.gname = ""
    info.mtime = 0
    info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    if info.name == "tmp":
        info.mode = 0o1777
    return info


def tar_of(folder: Path, prefix: str) -> bytes:
    """The folder's files as an uncompressed archive, under a prefix."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            name = str(Path(prefix) / path.relative_to(folder))
            tar.add(path, name, recursive=False, filter=entry)
    return buffer.getvalue()


def archive(folder: Path, result: Path) -> None:
    result.write_bytes(gzip.compress(tar_of(folder, folder.name), mtime=0))


def image(folder: Path, result: Path, name: str, architecture: str) -> None:
    """Writes an image that `docker load` and `podman load` read."""
    layer = tar_of(folder, "")
    digest = "sha256:" + hashlib.sha256(layer).hexdigest()
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": "1980-01-01T00:00:00Z",
        "config": {
            "Labels": {
                "org.opencontainers.image.title": "rlf-host",
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
            "User": str(USER),
            "Env": ["PATH=/usr/local/bin", f"HOME=/{HOME}"],
            "Entrypoint": ["rlf-host"],
            "WorkingDir": f"/{HOME}",
        },
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    config_bytes = json.dumps(config).encode()
    config_name = hashlib.sha256(config_bytes).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(result, "w") as tar:
        for file, data in [
            (config_name, config_bytes),
            ("layer.tar", layer),
            ("manifest.json", json.dumps(manifest).encode()),
        ]:
            info = tarfile.TarInfo(file)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def licences(result: Path, target: str, manifests: list[str]) -> None:
    """Writes the licence texts of all packages that the workspaces of the manifests depend on, each text once."""
    texts: dict[str, set[str]] = {}
    without: set[str] = set()
    for manifest in manifests:
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", manifest]
        platform = ["--filter-platform", target]
        answer = subprocess.run([*command, *platform], check=True, capture_output=True, text=True)
        for package in json.loads(answer.stdout)["packages"]:
            name = f"{package['name']} {package['version']} ({package['license']})"
            folder = Path(package["manifest_path"]).parent
            files = [file for file in sorted(folder.iterdir()) if LICENCE.match(file.name) and file.is_file()]
            for file in files:
                texts.setdefault(file.read_text(errors="replace").strip(), set()).add(name)
            # A package without a source is ours, or pydantic-core, which brings its text.
            if not files and package["source"] is not None:
                without.add(name)
    parts = [OTHERS, "Packages whose archives have no licence text:\n\n" + "\n".join(sorted(without))]
    parts += ["\n".join(sorted(names)) + "\n\n" + text for text, names in sorted(texts.items(), key=lambda one: min(one[1]))]
    result.write_text(f"\n\n{'-' * 80}\n\n".join(parts) + "\n")


def checksums(folder: Path, name: str) -> None:
    """Writes the SHA-256 of every file, in the form of `sha256sum`."""
    files = (file for file in sorted(folder.iterdir()) if file.name != name)
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / name).write_text("".join(lines))
    print("".join(lines), end="")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["archive", folder, result]:
            archive(Path(folder), Path(result))
        case ["image", folder, result, name, architecture]:
            image(Path(folder), Path(result), name, architecture)
        case ["licences", result, target, *manifests]:
            licences(Path(result), target, manifests)
        case ["checksums", folder, name]:
            checksums(Path(folder), name)
        case _:
            sys.exit(__doc__)
