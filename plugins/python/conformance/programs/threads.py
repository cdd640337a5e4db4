import asyncio
import contextvars
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

lock = threading.Lock()
with lock:
    print("locked", threading.current_thread() is threading.main_thread())
print(queue.Queue().empty(), threading.active_count())

# A larger stack, as programs of contests have it.
threading.stack_size(1 << 26)
sys.setrecursionlimit(1 << 16)


def depth(n):
    return depth(n - 1) + 1 if n else 0


def main():
    me = threading.current_thread()
    print("deep", depth(20000), me.name, me is threading.main_thread(), me.is_alive(), threading.active_count())


thread = threading.Thread(target=main)
thread.start()
thread.join()
print(thread.is_alive(), threading.enumerate() == [threading.main_thread()])
try:
    thread.start()
except RuntimeError as error:
    print(error)
try:
    threading.current_thread().join()
except RuntimeError as error:
    print(error)

# Values of a thread, and its context, are its own.
local, variable, seen = threading.local(), contextvars.ContextVar("variable", default=0), []
local.x = 1
variable.set(5)


def look():
    seen.extend((hasattr(local, "x"), threading.get_ident() != threading.main_thread().ident))
    local.x = 2
    variable.set(6)


thread = threading.Thread(target=look)
thread.start()
thread.join()
print(seen, local.x, variable.get())

# Work that is handed on.
items, total, done = queue.Queue(), 0, threading.Event()


def put():
    for item in (*range(3), None):
        items.put(item)


def get():
    global total
    while (item := items.get()) is not None:
        total += item
        items.task_done()
    done.set()


for target in (put, get):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join()
print(total, done.wait(), done.wait(1))


def add(count):
    global total
    for _ in range(count):
        with lock:
            total += 1


threads = [threading.Thread(target=add, args=(100,)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(timeout=5)
print(total)

# Errors of a thread are its own too.
threading.excepthook = lambda hook: print("hook", hook.thread.name, repr(hook.exc_value))
thread = threading.Thread(target=lambda: 1 / 0, name="divides")
thread.start()
thread.join()
thread = threading.Thread(target=sys.exit, args=(3,))
thread.start()
thread.join()

# Pools.
with ThreadPoolExecutor(1, "one", lambda: print("initialized")) as pool:
    print(list(pool.map(abs, range(-3, 0))))
    print(pool.submit(lambda: threading.current_thread().name).result())
    print(repr(pool.submit(lambda: 1 / 0).exception()))
with ThreadPoolExecutor(4) as pool:
    print(sorted(future.result() for future in as_completed([pool.submit(pow, 2, n) for n in range(5)])))
try:
    pool.submit(print)
except RuntimeError as error:
    print(error)


async def both():
    loop = asyncio.get_running_loop()
    return await asyncio.gather(asyncio.to_thread(max, 3, 4), loop.run_in_executor(None, lambda: asyncio.run(asyncio.sleep(0, "inner"))))


print(asyncio.run(both()))
