import time

print("before")
time.sleep(3600)
print("never")
