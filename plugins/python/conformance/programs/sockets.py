import socket
import urllib.error
import urllib.request

for connect in (
    lambda: socket.create_connection(("127.0.0.1", 80), 1),
    lambda: socket.getaddrinfo("example.com", 80),
    lambda: socket.socket().bind(("127.0.0.1", 0)),
    lambda: urllib.request.urlopen("http://example.com/", timeout=1),
):
    try:
        connect()
        print("connected")
    except OSError as error:
        print("refused:", isinstance(error, OSError))
