"""The peer of `rlf-bench sandbox`: one trivial tool behind a resident MCP server, over stdio.

    python mcp_echo.py          asks a server that it starts, one call after the other and 32 at once
    python mcp_echo.py serve    is that server

Prints one line of JSON: seconds of every call, and calls per second with 32 at once.
"""

import asyncio
import json
import sys
import time


def serve():
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("echo", log_level="ERROR")

    @server.tool()
    def add(a: int, b: int) -> str:
        """Adds."""
        return str(a + b)

    server.run()


async def ask(calls):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    async with stdio_client(parameters) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            await session.initialize()

            async def call(number):
                began = time.perf_counter()
                result = await session.call_tool("add", {"a": number, "b": 1})
                assert result.content[0].text == str(number + 1)
                return time.perf_counter() - began

            for number in range(20):
                await call(number)
            seconds = [await call(number) for number in range(calls)]
            began = time.perf_counter()
            for start in range(0, calls, 32):
                await asyncio.gather(*(call(start + n) for n in range(32)))
            at_once = -(-calls // 32) * 32 / (time.perf_counter() - began)
    print(json.dumps({"seconds": seconds, "calls_per_s_at_32": at_once}))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        asyncio.run(ask(500))
