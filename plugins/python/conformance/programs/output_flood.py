line = "x" * 99
for number in range(20_000):
    print(line)
print("the last line")
