import queue
import threading

asked, told = queue.Queue(), queue.Queue()


def answer():
    try:
        told.put(asked.get() + 1)
    except RuntimeError as error:
        print("in the thread:", error)


thread = threading.Thread(target=answer)
try:
    thread.start()
    asked.put(1)
    print(told.get())
except RuntimeError as error:
    print("in the program:", error)
thread.join()

event = threading.Event()
print(event.wait(0.01))
alarm = threading.Timer(60, print, ["late"])
threading.excepthook = lambda hook: print("hook:", hook.exc_value)
try:
    alarm.start()
    alarm.cancel()
    alarm.join()
    print("cancelled")
except RuntimeError as error:
    print("in the program:", error)
