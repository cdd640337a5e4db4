import os
import subprocess

for start in (
    lambda: subprocess.run(["echo", "x"]),
    lambda: subprocess.check_output("ls", shell=True),
    lambda: os.system("ls"),
    lambda: os.popen("ls").read(),
    lambda: os.fork(),
    lambda: os.kill(1, 9),
    lambda: os.execv("/bin/ls", ["ls"]),
):
    try:
        start()
        print("started")
    except (OSError, AttributeError) as error:
        print("refused by", type(error).__name__)
