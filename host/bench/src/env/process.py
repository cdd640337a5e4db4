"""The peer of `rlf-bench env`: one environment file behind an MCP server of its own, over stdio.

    python process.py FILE SECONDS    serves FILE until standard input ends, and for so many seconds at the most

The packages mcp and pydantic are the installed ones. Nothing is logged, for that would count against the peer.
"""

import importlib.util
import logging
import pathlib
import signal
import sys


def main(path, seconds):
    # Whatever becomes of the one who asks, nobody stays behind.
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
