def loop(n):
    total = 0
    for i in range(n):
        total = (total + i * i) % 1000003
    return total


print(loop(1000000))
