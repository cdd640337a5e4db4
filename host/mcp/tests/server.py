"""An MCP server that misbehaves on request, over standard input and output or over HTTP. It needs no package.

usage: server.py FOLDER [http [TOKEN]]
It writes what happened to it into files of FOLDER: calls, cancelled, started.
"""

import http.server
import json
import os
import sys
import threading
import time

FOLDER = sys.argv[1]
OBJECT = {"type": "object"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
GARBLED = '{"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "'
CHANGED = os.path.join(FOLDER, "changed")
VANISHED = os.path.join(FOLDER, "vanished")


def note(file, line):
    with open(os.path.join(FOLDER, file), "a") as out:
        out.write(line + "\n")


def tools():
    echo = OBJECT if os.path.exists(CHANGED) else TEXT
    repeatable = {"idempotentHint": True}
    malformed = [{"name": "shapeless"}, {"inputSchema": OBJECT}]
    vanishing = [] if os.path.exists(VANISHED) else [{"name": "vanish", "inputSchema": OBJECT}]
    return (malformed if os.path.exists(os.path.join(FOLDER, "malformed")) else []) + [
        {"name": "echo", "description": "Says it again", "inputSchema": echo},
        {"name": "fail", "inputSchema": OBJECT},
        {"name": "picky", "inputSchema": OBJECT},
        {"name": "broken", "inputSchema": OBJECT},
        {"name": "hang", "inputSchema": OBJECT},
        {"name": "die", "inputSchema": OBJECT},
        {"name": "die_twice", "inputSchema": OBJECT, "annotations": repeatable},
        {"name": "flood", "inputSchema": OBJECT},
        {"name": "noise", "inputSchema": OBJECT},
        {"name": "garble", "inputSchema": OBJECT},
        {"name": "giant", "inputSchema": OBJECT},
        {"name": "large", "inputSchema": OBJECT},
        {"name": "lie", "inputSchema": OBJECT, "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        {"name": "picture", "inputSchema": OBJECT},
        {"name": "change", "inputSchema": OBJECT},
        {"name": "ask", "inputSchema": OBJECT},
        {"name": "ping", "inputSchema": OBJECT},
        {"name": "busy", "inputSchema": OBJECT},
        {"name": "fs.read", "inputSchema": OBJECT},
        {"name": "remote", "inputSchema": {"type": "object", "properties": {"x": {"$ref": "https://example.com/x"}}}},
    ] + vanishing


def text(said, failed=False):
    return {"content": [{"type": "text", "text": said}], "isError": failed}


def call(name, arguments, send):
    """The result of a call; `None` if there is none, an `Exception` for a JSON-RPC error."""
    note("calls", name)
    if name == "echo":
        return text(arguments["text"])
    if name == "fail":
        return text("that did not work", failed=True)
    if name == "picky":
        return Refusal(-32602, "not these arguments")
    if name == "vanish":
        # It says nothing of its other list.
        open(VANISHED, "w").close()
        return Refusal(-32602, "Unknown tool: vanish")
    if name == "broken":
        return Refusal(-32603, "a bug")
    if name in ("die", "die_twice"):
        os._exit(3)
    if name == "flood":
        sys.stdout.write("x" * (20 << 20) + "\n")
        return None
    if name == "noise":
        sys.stdout.write("loading ...\n{'a': 1}\n{\n" + json.dumps({"level": "error", "error": "x"}) + "\n")
        return text("heard")
    if name == "garble":
        sys.stdout.write(GARBLED + "\n")
        sys.stdout.flush()
        return None
    if name == "giant":
        # Its line never ends.
        sys.stdout.write(GARBLED + "x" * (20 << 20))
        sys.stdout.flush()
        return None
    if name == "large":
        return text("x" * 5000)
    if name == "lie":
        return {"content": [], "structuredContent": {"n": "seven"}}
    if name == "picture":
        return {"content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0K"}]}
    if name == "change":
        open(CHANGED, "w").close()
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("changed")
    if name == "ping":
        while True:
            send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
    if name == "ask":
        send({"jsonrpc": "2.0", "id": "question", "method": "elicitation/create", "params": {"message": "your password?", "requestedSchema": OBJECT}})
        return text("asked")
    return None


class Refusal:
    def __init__(self, code, message):
        self.error = {"code": code, "message": message}


def answer(message, send):
    method = message.get("method")
    if method == "notifications/cancelled":
        note("cancelled", "yes")
    if "id" not in message or method is None:
        return
    params = message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "bad", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools()}
    elif method == "tools/call":
        result = call(params["name"], params.get("arguments", {}), send)
    else:
        result = Refusal(-32601, "no such method")
    if isinstance(result, Refusal):
        send({"jsonrpc": "2.0", "id": message["id"], "error": result.error})
    elif result is not None:
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def standard_input():
    note("started", str(os.getpid()))

    def send(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    print("ready to misbehave", file=sys.stderr, flush=True)
    for line in sys.stdin:
        answer(json.loads(line), send)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions = set()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if len(sys.argv) > 3 and self.headers["Authorization"] != "Bearer " + sys.argv[3]:
            return self.reply(401, {"error": "no token, " + str(self.headers["Authorization"])})
        method = body.get("method")
        if method == "initialize":
            session = str(len(self.sessions) + 1)
            self.sessions.add(session)
            note("started", session)
        elif method == "server/discover":
            return self.reply(400, {"error": "what is this?"})
        else:
            session = self.headers["Mcp-Session-Id"]
            if session not in self.sessions:
                return self.reply(404, {"error": "no such session"})
        if method == "tools/call":
            name = body["params"]["name"]
            if name == "hang":
                note("calls", name)
                time.sleep(3)
                return self.reply(200, {})
            if name == "busy":
                status, body = body["params"]["arguments"]["answer"]
                return self.reply(status, body)
            if name == "garble":
                return self.reply(200, "event: message\ndata: " + GARBLED + "\n\n", kind="text/event-stream")
            if name == "die":
                self.sessions.clear()
                return self.reply(500, {"error": "down"})
        sent = []
        answer(body, sent.append)
        if not sent:
            return self.reply(202, None)
        if method == "tools/call":
            events = "".join("event: message\ndata: " + json.dumps(message) + "\n\n" for message in sent)
            return self.reply(200, events, kind="text/event-stream")
        self.reply(200, sent[-1], session=session)

    def do_DELETE(self):
        note("cancelled", "session")
        self.reply(200, {})

    def reply(self, status, body, kind="application/json", session=None):
        data = b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


if len(sys.argv) > 2:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    # It ends with whoever started it.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()
else:
    standard_input()
