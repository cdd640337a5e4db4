"""`signal.alarm` and `signal.setitimer` end what takes too long."""

import signal
import time


class TooLong(Exception):
    pass


def handler(number, frame):
    print("handler", number == signal.SIGALRM, frame.f_code.co_name)
    raise TooLong


def endless():
    while True:
        pass


def endless_inside():
    try:
        while True:
            pass
    except TooLong:
        print("caught around the loop")


def counting():
    for number in range(10**9):
        number += 1


def recursive(depth):
    if depth:
        recursive(depth - 1)
    else:
        endless()


def sleeping():
    time.sleep(5)


def limited(function, *arguments):
    # A second that is slept costs no time of the processor. A quarter of one is enough for the others.
    if function is sleeping:
        signal.alarm(1)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.25)
    try:
        print(function.__name__, "returned", function(*arguments))
    except TooLong:
        print(function.__name__, "took too long")
    finally:
        signal.alarm(0)


print(signal.signal(signal.SIGALRM, handler) is signal.SIG_DFL)
for function in (endless, endless_inside, counting, sleeping):
    limited(function)
limited(recursive, 20)
limited(sum, range(1000))

print(signal.alarm(7), signal.alarm(0), signal.alarm(0))
try:
    signal.alarm(1.5)
except TypeError as error:
    print(error)
print(signal.setitimer(signal.ITIMER_REAL, 0.0), signal.getitimer(signal.ITIMER_REAL))

ticks = []
signal.signal(signal.SIGALRM, lambda number, frame: ticks.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
while len(ticks) < 3:
    pass
left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
print(len(ticks), left <= 0.05, interval)

signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.alarm(1)
time.sleep(1.5)
print("ignored")

# The end of a program takes an alarm back.
signal.signal(signal.SIGALRM, handler)
signal.alarm(5)
