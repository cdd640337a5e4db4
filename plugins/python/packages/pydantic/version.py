"""The release of pydantic whose behaviour and texts this package keeps."""

VERSION = "2.14.3"
ERRORS_URL = "https://errors.pydantic.dev/" + ".".join(VERSION.split(".")[:2]) + "/v/"
