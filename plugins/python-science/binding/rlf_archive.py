"""The libraries inside the snapshot: compiled modules in one archive, which stays packed.

What a run has not imported yet is read from the archive, unpacked and loaded. The archive has no sources.
"""

import importlib.abc
import importlib.machinery
import importlib.resources.abc
import io
import marshal
import os
import sys
import zipfile
import zlib

_LEFT_OUT = ("matplotlib/", "mpl_toolkits/", "seaborn/")
"""Packages that find their data only in a file system, and those that need them."""

_HEADER_BYTES = 16
"""What stands before the code in a compiled module."""
_LOCAL_BYTES = 30
"""What stands before the name in front of a member."""


class Archive(importlib.abc.InspectLoader):
    """Finds and loads the modules of the archive at `path`. `read(offset, size)` returns bytes of it, when it is no file any more."""

    def __init__(self, path, read):
        self.path = path
        self.read = read
        self.modules = {}
        self.files = {}
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.filename.startswith(_LEFT_OUT):
                    self._add(archive, member)

    def _add(self, archive, member):
        file = member.filename
        archive.fp.seek(member.header_offset)
        local = archive.fp.read(_LOCAL_BYTES)
        start = member.header_offset + _LOCAL_BYTES + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        self.files[file] = member.compress_type == zipfile.ZIP_DEFLATED, start, member.compress_size
        if file.endswith(".pyc"):
            parts = file[: -len(".pyc")].split("/")
            is_package = parts[-1] == "__init__"
            self.modules[".".join(parts[:-1] if is_package else parts)] = file, is_package

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        file, is_package = self.modules[name]
        origin = f"{self.path}/{file}"
        spec = importlib.machinery.ModuleSpec(name, self, origin=origin, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations.append(os.path.dirname(origin))
        return spec

    def is_package(self, name):
        return self._module(name)[1]

    def get_code(self, name):
        return marshal.loads(memoryview(self.content(self._module(name)[0]))[_HEADER_BYTES:])

    def get_source(self, name):
        raise ImportError(f"there is no source of {name}", name=name)

    def get_data(self, path):
        """A file beside the modules, by its path as `__file__` has it."""
        return self.content(path.removeprefix(self.path + "/"))

    def get_resource_reader(self, name):
        """What `importlib.resources` finds in the package `name`."""
        return Resources(self, os.path.dirname(self._module(name)[0])) if self.is_package(name) else None

    def content(self, file):
        """The bytes of a file of the archive."""
        if file not in self.files:
            raise FileNotFoundError(f"no file {file!r} in the library")
        is_packed, start, size = self.files[file]
        data = self.read(start, size)
        return zlib.decompress(data, -zlib.MAX_WBITS) if is_packed else data

    def _module(self, name):
        try:
            return self.modules[name]
        except KeyError:
            raise ImportError(f"no module named {name!r} in the library", name=name) from None

    def adopt(self):
        """Becomes the loader of the modules that came from the archive, which is about to go."""
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if spec is None or name not in self.modules or not (spec.origin or "").startswith(self.path):
                continue
            spec.loader = module.__loader__ = self
            spec.cached = None
            if hasattr(module, "__cached__"):
                del module.__cached__


class Resources(importlib.resources.abc.TraversableResources):
    """The files of a package."""

    def __init__(self, archive, folder):
        self.root = Resource(archive, folder)

    def files(self):
        return self.root


class Resource(importlib.resources.abc.Traversable):
    """A file or a folder of the archive."""

    def __init__(self, archive, path):
        self.archive = archive
        self.path = path

    @property
    def name(self):
        return self.path.rpartition("/")[2]

    def is_file(self):
        return self.path in self.archive.files

    def is_dir(self):
        return any(file.startswith(self.path + "/") for file in self.archive.files)

    def iterdir(self):
        start = self.path + "/"
        names = {file.removeprefix(start).partition("/")[0] for file in self.archive.files if file.startswith(start)}
        return (Resource(self.archive, start + name) for name in sorted(names))

    def open(self, mode="r", *arguments, **options):
        stream = io.BytesIO(self.archive.content(self.path))
        return stream if "b" in mode else io.TextIOWrapper(stream, *arguments, **options)
