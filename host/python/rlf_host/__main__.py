"""The program `rlf-host`, as `python -m rlf_host` or by its name."""

import os
import sys
from typing import NoReturn

from ._process import PROGRAM


def main() -> NoReturn:
    """Replaces this process by the program."""
    os.execv(PROGRAM, ["rlf-host", *sys.argv[1:]])


if __name__ == "__main__":
    main()
