"""Runs programs as other code services do: HTTP, a file, a process. Prints its port."""
import http.server, json, os, socketserver, subprocess, sys, tempfile, time  # noqa: E401


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "main.py")
            with open(path, "w") as file:
                file.write(request["code"])
            began = time.monotonic()
            done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=folder,
                                  timeout=request.get("run_timeout", 10))
        body = json.dumps({"status": "Success" if done.returncode == 0 else "Failed", "message": "", "compile_result": None,
                           "run_result": {"status": "Finished", "execution_time": time.monotonic() - began,
                                          "return_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr},
                           "executor_pod_name": None, "files": {}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256
    # Answers are written at once, in two pieces.
    disable_nagle_algorithm = True


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
