pattern = "\d+"
print(pattern, 1 is 1)
assert (1, "always true")
