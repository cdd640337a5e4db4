import resource
import sys

sys.setrecursionlimit(10**6)
soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
resource.setrlimit(resource.RLIMIT_STACK, (2**26, hard))
print(resource.getrlimit(resource.RLIMIT_STACK)[0], resource.getrlimit(resource.RLIMIT_STACK)[1] == hard)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(type(usage), len(usage), usage.ru_utime == usage[0], usage.ru_utime >= 0, resource.getpagesize())
print(resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIM_INFINITY, resource.error is OSError)
for wrong in ((99, (1, 1)), (resource.RLIMIT_CORE, (2, 1)), (resource.RLIMIT_CORE, (1, 2, 3)), (resource.RLIMIT_CORE, 5)):
    try:
        resource.setrlimit(*wrong)
    except (ValueError, TypeError) as error:
        print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(resource.getrlimit(resource.RLIMIT_CORE))
resource.getrusage(17)
