import json

import numpy as np

nested = []
for _ in range(20_000):
    nested = [nested]
for function in (repr, json.dumps, np.array):
    try:
        function(nested)
        print("no error")
    except (RecursionError, ValueError) as error:
        print(type(error).__name__)
