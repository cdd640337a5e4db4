import atexit

atexit.register(print, "still called")
raise ValueError("uncaught")
