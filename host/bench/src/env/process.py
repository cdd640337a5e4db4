"""The comparison of `rlf-bench env`: one environment file behind its own MCP server, over stdio.

    python process.py FILE SECONDS    serves FILE until standard input ends, but at most SECONDS seconds

The installed packages mcp and pydantic are used. Nothing is logged, because that would slow this side of the comparison.
"""

import importlib.util
import logging
import pathlib
import signal
import sys


def main(path, seconds):
    # The process ends by itself, even if its parent is gone.
    signal.alarm(int(seconds))
    name = pathlib.Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    logging.disable(logging.CRITICAL)
    module.mcp.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
