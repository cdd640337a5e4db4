"""MCP clients that we did not write, against our server: the Python SDK in both revisions of the protocol and over both
transports, the inspector's command line, and the conformance tests. And an MCP server that we did not write, called by us.

`cargo xtask clients mcp` installs them from PyPI and npm, starts a service and runs this with its address, the program, and
the folders of the packages. Each case is one promise of docs/mcp.md.
"""

import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback

from mcp import Client, MCPError, StdioServerParameters, stdio_client

URL, HOST, NPM, SERVERS = sys.argv[1:]
URL = URL.rstrip("/") + "/mcp"
OWN = pathlib.Path(__file__).parent
NODE = f"{NPM}/node_modules/node/bin/node"
PACKAGES = f"{NPM}/node_modules/@modelcontextprotocol"
# What the conformance tests ask of servers that have logging, completion, resources, prompts, sampling and elicitation, and of
# tools that tell their progress or return files, does not concern this one.
CONFORMANCE = [
    "server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-error",
    "json-schema-2020-12", "server-sse-polling", "server-sse-multiple-streams", "dns-rebinding-protection",
]


def target(way):
    if way == "http":
        return URL
    arguments = ["serve", "mcp", "--plugins", "target/plugins", "--plugins", str(OWN / "mcp_tools")]
    return stdio_client(StdioServerParameters(command=HOST, args=arguments))


async def every_way(case):
    for way in ("stdio", "http"):
        for mode in ("legacy", "2026-07-28"):
            async with Client(target(way), mode=mode) as client:
                assert client.protocol_version == ("2025-11-25" if mode == "legacy" else mode)
                await case(client)


def text(result):
    return result.content[0].text


async def sdk_finds_tools_and_their_promises():
    async def case(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        calculate = tools["calculate"]
        assert calculate.input_schema["required"] == ["expression"], calculate
        assert calculate.annotations.read_only_hint and not calculate.annotations.destructive_hint
        assert {"python", "javascript"} <= tools.keys()

    await every_way(case)


async def sdk_reads_answers_and_errors():
    async def case(client):
        assert text(await client.call_tool("calculate", {"expression": "(2+3)*4"})) == "20"
        wrong = await client.call_tool("calculate", {"expression": 5})
        assert wrong.is_error and "must be a string" in text(wrong), wrong
        program = await client.call_tool("python", {"code": "print(6 * 7)"})
        assert text(program).strip() == "42", program
        picture = await client.call_tool("test_image_content", {})
        assert picture.content[0].mime_type == "image/png"
        many = await client.call_tool("test_multiple_content_types", {})
        assert many.structured_content == {"test": "data", "value": 123}, many
        try:
            await client.call_tool("nothing", {})
            raise AssertionError("an unknown tool was called")
        except MCPError as error:
            assert "no tool `nothing`" in str(error)

    await every_way(case)


async def sdk_makes_a_thousand_calls_at_once():
    async def case(client):
        calls = [client.call_tool("calculate", {"expression": f"{n}*7"}) for n in range(1000)]
        assert [text(answer) for answer in await asyncio.gather(*calls)] == [str(n * 7) for n in range(1000)]

    await every_way(case)


async def sdk_hears_of_progress_and_can_leave():
    async def case(client):
        heard = []

        async def progress(done, total, message):
            heard.append((done, message))

        loop = "while True: pass"
        try:
            call = client.call_tool("python", {"code": loop}, progress_callback=progress)
            await asyncio.wait_for(call, 2.5)
            raise AssertionError("an endless loop ended")
        except TimeoutError:
            pass
        assert heard and heard[0][1] == "running", heard
        began = time.time()
        assert text(await client.call_tool("python", {"code": "print('on')"})).strip() == "on"
        assert time.time() - began < 5

    await every_way(case)


def inspector(*words):
    command = [NODE, f"{PACKAGES}/inspector/clients/launcher/build/index.js", "--cli", URL, "--transport", "http", *words]
    # It starts `node` by its name.
    path = os.pathsep.join([os.path.dirname(NODE), os.environ["PATH"]])
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


async def inspector_lists_and_calls():
    assert "calculate" in [tool["name"] for tool in inspector("--method", "tools/list")["tools"]]
    words = ("--method", "tools/call", "--tool-name", "calculate", "--tool-arg", "expression=6*7")
    assert inspector(*words)["content"][0]["text"] == "42"


async def conformance_tests_pass():
    with tempfile.TemporaryDirectory() as folder:
        command = [NODE, f"{PACKAGES}/conformance/dist/index.js", "server", "--url", URL, "--suite", "all", "-o", folder]
        said = subprocess.run(command, capture_output=True, text=True).stdout
    rows = dict(re.findall(r"^[✓✗] ([a-z0-9-]+): \d+ passed, (\d+) failed", said, re.MULTILINE))
    failed = [name for name in CONFORMANCE if rows.get(name) != "0"]
    also = [name for name, count in rows.items() if count == "0" and name not in CONFORMANCE]
    print(f"    conformance: {len(CONFORMANCE) - len(failed)} of {len(CONFORMANCE)} that concern us, {len(rows)} in all")
    assert not failed, f"failed: {failed}\n{said[-3000:]}"
    assert not also, f"these pass now, too: {also}"


async def a_server_from_pypi_is_called():
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "c.toml"
        config.write_text(f'[mcp.time]\ncommand = "{SERVERS}/mcp-server-time"\nargs = ["--local-timezone", "UTC"]\n')
        words = [HOST, "mcp", "call", "convert_time", "--config", str(config)]
        asked = json.dumps({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"})
        said = subprocess.run([*words[:4], asked, *words[4:]], capture_output=True, text=True, check=True).stdout
        assert "T21:00:00+09:00" in said, said


CASES = [value for name, value in list(globals().items())
         if name.startswith(("sdk_", "inspector_", "conformance_", "a_server_"))]

failed = 0
for case in CASES:
    began = time.time()
    try:
        asyncio.run(case())
        outcome = "passed"
    except Exception:
        failed += 1
        outcome = "FAILED"
        traceback.print_exc()
    print(f"  {case.__name__.replace('_', ' '):<52} {outcome}  {time.time() - began:.1f} s", flush=True)
print(f"{len(CASES) - failed} of {len(CASES)} passed")
sys.exit(failed > 0)
