"""Our training in environments of servers of the Open Reward Standard.

`cargo xtask clients ors` installs both published packages from PyPI and runs this with the program and a folder of
plugins. Each case is one promise of docs/openenv.md.
"""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

PROGRAM, PLUGINS = sys.argv[1:]
OWN = pathlib.Path(__file__).parent
ROOT = OWN.parent.parent


class server:
    """The environment of ors_server.py, on a port of its own."""

    def __init__(self, package, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, OWN / "ors_server.py", package, str(port), f"{folder}/log"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{self.url}/health")
                return self.url
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def ask(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def rows(url, split):
    """A row for each task of a split, as in docs/openenv.md, with the call that solves it."""
    for index in range(ask(f"{url}/counting/num_tasks", {"split": split})["num_tasks"]):
        task = {"split": split, "index": index}
        goal = ask(f"{url}/counting/task", task)["task"]["goal"]
        yield {
            "id": f"{split}-{index}", "source": "ors", "environment": "counting", "prompt": [], "setup": task,
            "reference": {"calls": [{"name": "add", "arguments": {"by": goal}}]},
        }


def run(command):
    return subprocess.run([PROGRAM, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def a_policy_trains_in_an_environment_of(package):
    with tempfile.TemporaryDirectory() as folder, server(package, folder) as url:
        for split in ("train", "test"):
            lines = [json.dumps(row) + "\n" for row in rows(url, split)]
            pathlib.Path(folder, f"{split}.jsonl").write_text("".join(lines))
        quickstart = (ROOT / "configs/quickstart.toml").read_text()
        shape = quickstart[quickstart.index("[model.init]"):].split("\n\n")[0]
        config = pathlib.Path(folder, "config.toml")
        config.write_text(f"""
output = "{folder}/run"

{shape}

[tokenizer.train]
vocab_size = 400

[dialogue]
answer = "final-turn"
max_turns = 2
max_tokens_per_turn = 64
context = 512

[tasks]
train = "train.jsonl"
validation = "test.jsonl"

[ors.counting]
url = "{url}"

[rewards]
success = "reward-verdict.success >= 1"

[[rewards.stack]]
plugin = "reward-verdict"
weights = {{ score = 1.0 }}

[sft]
steps = 100
batch_size = 16
optimizer.learning_rate = 5e-3
optimizer.warmup_steps = 5

[rl]
steps = 10
prompts_per_step = 8
group_size = 8

[eval]
tasks = 20
samples = 2
validation_tasks = 20
every = 10
""")
        trained = run(["train", str(config), "--plugins", PLUGINS])
        assert trained.returncode == 0, trained.stdout[-3_000:]
        steps = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        steps = [step for step in steps if step["phase"] == "rl" and "reward" in step]
        first, last = (sum(step["reward"] for step in part) / 3 for part in (steps[:3], steps[-3:]))
        excluded = sum(step.get("excluded", 0) for step in steps)
        log = pathlib.Path(folder, "log").read_text().split()
        began, ended = log.count("begins"), log.count("ends")
        print(f"    mean reward of the first 3 steps {first:.2f}, of the last 3 {last:.2f}, excluded {excluded}")
        print(f"    {began} sessions, {ended} of them ended by us")
        # The last sessions may be open when the program ends. The server ends them.
        assert last > 0.3 and excluded == 0 and ended > 0.9 * began, trained.stdout[-3_000:]


def a_task_that_the_server_does_not_have_ends_the_command(package):
    with tempfile.TemporaryDirectory() as folder, server(package, folder) as url:
        row = next(rows(url, "train"))
        row["setup"]["index"] = 1_000
        pathlib.Path(folder, "tasks.jsonl").write_text(json.dumps(row) + "\n")
        config = pathlib.Path(folder, "config.toml")
        quickstart = (ROOT / "configs/quickstart.toml").read_text()
        shape = quickstart[quickstart.index("[model.init]"):].split("\n\n")[0]
        config.write_text(f"""
output = "{folder}/run"
{shape}
[tokenizer.train]
vocab_size = 400
[tasks]
train = "tasks.jsonl"
[ors.counting]
url = "{url}"
[rewards]
success = "reward-verdict.success >= 1"
[[rewards.stack]]
plugin = "reward-verdict"
weights = {{ score = 1.0 }}
[rl]
steps = 1
""")
        refused = run(["train", str(config), "--plugins", PLUGINS])
        assert refused.returncode != 0 and "Invalid index" in refused.stdout, refused.stdout[-3_000:]


def main():
    failed = 0
    cases = [a_policy_trains_in_an_environment_of, a_task_that_the_server_does_not_have_ends_the_command]
    cases = [(case, package) for package in ("openreward", "ors") for case in cases]
    for case, package in cases:
        name = f"{case.__name__.replace('_', ' ')}: {package}"
        try:
            case(package)
            print(f"  ok      {name}", flush=True)
        except Exception:
            failed += 1
            print(f"  FAILED  {name}\n{traceback.format_exc()}", flush=True)
    print(f"{len(cases) - failed} of {len(cases)} cases passed")
    sys.exit(failed > 0)


main()
