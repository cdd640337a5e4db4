"""Packs a folder as a release archive or as a container image, with the same bytes for the same files.

    pack.py archive FOLDER RESULT.tar.gz
    pack.py image FOLDER RESULT.tar NAME ARCHITECTURE
    pack.py checksums FOLDER FILE
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

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
        case ["checksums", folder, name]:
            checksums(Path(folder), name)
        case _:
            sys.exit(__doc__)
