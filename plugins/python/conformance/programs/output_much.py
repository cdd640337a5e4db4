for number in range(600):
    print(number, "some text on the line")
print("y" * 20_000)
