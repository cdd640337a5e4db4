print(len({hash(str(number)) for number in range(100)}) > 90)
print(hash(1), hash(1.0), hash(-1), hash(2**61 - 1) == 0 or hash(2**31 - 1) == 0, hash(()) == hash(()))
print(sorted({"b", "a", "c"}), {1: "x", "a": 2})
