import sys

sys.stdout.write("text\n")
sys.stdout.flush()
sys.stdout.buffer.write(b"bytes \xff\x00\n".replace(b"\xff", b"").replace(b"\x00", b""))
sys.stdout.buffer.flush()
print(sys.stdout.encoding, sys.stdout.fileno(), sys.stdout.isatty(), sys.stdout.writable(), sys.stdout.name)
print(sys.stderr.fileno(), sys.stderr.errors, sys.stderr.name)
sys.stdout.writelines(["a\n", "b\n"])
