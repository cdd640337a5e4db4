import time

start, wall = time.monotonic(), time.time()
time.sleep(0.05)
print(time.monotonic() - start >= 0.05, time.time() - wall >= 0.04, time.perf_counter() > 0)
print(time.gmtime(0).tm_year, time.strftime("%Y-%m-%d", time.gmtime(86400)))
print(time.monotonic_ns() >= 0, time.time() > 1e9)
