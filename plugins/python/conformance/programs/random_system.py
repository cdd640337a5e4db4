import os
import random
import secrets
import uuid

print(len(os.urandom(16)), os.urandom(8) != os.urandom(8), len(secrets.token_hex(4)), uuid.uuid4().version)
print(0 <= random.SystemRandom().random() < 1, secrets.randbelow(10) in range(10))
