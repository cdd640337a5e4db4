"""Marks the wheel as one with a library of its own, which pyproject.toml cannot say."""

from setuptools import Distribution, setup


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=WithLibrary)
