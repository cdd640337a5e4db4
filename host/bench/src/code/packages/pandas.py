import pandas as pd

frame = pd.DataFrame({"key": ["a", "b"] * 500, "value": range(1000)})
means = frame.groupby("key")["value"].mean()
print(means["a"], means["b"])
