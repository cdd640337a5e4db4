for number in range(5000):
    print(number, "some text on the line")
print("y" * 100_000)
