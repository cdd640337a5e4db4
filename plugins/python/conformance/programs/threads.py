import threading
import queue
from concurrent.futures import ThreadPoolExecutor

lock = threading.Lock()
with lock:
    print("locked", threading.current_thread() is threading.main_thread())
print(queue.Queue().empty(), threading.active_count())
local = threading.local()
local.x = 1
try:
    threading.Thread(target=print, args=("in a thread",)).start()
except RuntimeError as error:
    print("refused:", error)
try:
    with ThreadPoolExecutor() as pool:
        print(list(pool.map(abs, [-1])))
except RuntimeError as error:
    print("refused:", error)
