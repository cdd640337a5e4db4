"""Stands in for the build backend of pydantic-core, so that `pip download` gets the sources without building them."""

import email
import pathlib


def prepare_metadata_for_build_wheel(folder, settings=None):
    """Name and version, which is all that pip asks for."""
    text = pathlib.Path("PKG-INFO").read_text(encoding="utf-8")
    about = email.message_from_string(text)
    metadata = pathlib.Path(folder, f"{about['Name'].replace('-', '_')}-{about['Version']}.dist-info")
    metadata.mkdir()
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    return metadata.name
