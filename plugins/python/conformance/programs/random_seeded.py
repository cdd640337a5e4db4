import random

print(random.random(), random.randint(1, 100), random.choice("abcdef"), random.sample(range(50), 4))
items = list(range(8))
random.shuffle(items)
print(items, random.gauss(0, 1), random.getrandbits(70), random.choices("xyz", k=5))
random.seed("text")
print(random.random(), random.Random(5).uniform(1, 2))
