import locale
import os
import resource
import time

print(os.system("exit 127"), len(os.times()), os.times().user < 60)
print(time.process_time() < 60, time.thread_time() >= 0, time.thread_time_ns() >= 0, resource.getrusage(resource.RUSAGE_SELF).ru_utime < 60)
try:
    os.get_terminal_size()
except OSError as error:
    print(error.strerror)
for name in ("de_DE.UTF-8", "nowhere", ("fr_FR", "UTF-8")):
    try:
        print(locale.setlocale(locale.LC_ALL, name))
    except locale.Error as error:
        print(error)
print(locale.setlocale(locale.LC_ALL, "C"), locale.setlocale(locale.LC_NUMERIC), locale.format_string("%d", 1234567, grouping=True))
