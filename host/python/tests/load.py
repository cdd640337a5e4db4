"""Loads worker processes as Ray would: each has 16 threads that call a tool and run programs, and one worker is killed.

    PYTHONPATH=target/python python3 host/python/tests/load.py --calls 1000000

Every answer is checked. The other workers must lose nothing, and their memory must not grow. `cargo xtask test` lays the
package out in `target/python`; an installed package needs no PYTHONPATH.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

THREADS = 16
#: One program for this many tool calls.
CALLS_PER_PROGRAM = 50


def resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def work(calls: int) -> None:
    """One worker: makes its calls and prints a line of JSON after each tenth of them."""
    from rlf_host import Plugins, Sandbox

    plugins, sandbox = Plugins(only=["calculator"]), Sandbox()
    numbers = iter(range(calls))
    lock = threading.Lock()
    wrong: list[str] = []
    done = 0

    def loop() -> None:
        nonlocal done
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            text = plugins.call("calculate", {"expression": f"{number}+1"}).text
            if text != str(number + 1):
                wrong.append(f"{number}: {text}")
            if number % CALLS_PER_PROGRAM == 0 and sandbox.run(f"print({number})").stdout != f"{number}\n":
                wrong.append(f"program {number}")
            with lock:
                done += 1
                if done % max(1, calls // 10) == 0:
                    print(json.dumps({"done": done, "wrong": len(wrong), "mib": resident_mib()}), flush=True)

    threads = [threading.Thread(target=loop) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        sys.exit("; ".join(wrong[:5]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000, help="calls of all workers together [default: %(default)s]")
    parser.add_argument("--workers", type=int, default=2, help="workers that finish [default: %(default)s]")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        return work(options.work)

    def start(calls: int) -> "subprocess.Popen[str]":
        command = [sys.executable, __file__, "--work", str(calls)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    began = time.monotonic()
    # The worker that is killed has more to do than the test has time for.
    victim, workers = start(10**9), [start(options.calls // options.workers) for _ in range(options.workers)]
    killer = threading.Timer(5, victim.kill)
    killer.start()
    failed = False
    for number, worker in enumerate(workers):
        output, _ = worker.communicate()
        lines = [json.loads(line) for line in output.splitlines()]
        failed |= worker.returncode != 0 or not lines
        for line in lines[:1] + lines[-1:]:
            print(f"worker {number}: {line['done']:>9} calls, {line['wrong']} wrong, {line['mib']:.0f} MiB")
    seconds = time.monotonic() - began
    killer.join()
    victim.communicate()
    print(f"the killed worker ended with {victim.returncode}; {options.calls / seconds:,.0f} calls a second, with loading")
    if failed or victim.returncode != -signal.SIGKILL:
        sys.exit("a worker lost calls")


if __name__ == "__main__":
    main()
