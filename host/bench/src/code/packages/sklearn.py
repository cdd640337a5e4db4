import numpy as np
from sklearn.linear_model import LinearRegression

x = np.arange(20.0).reshape(10, 2)
print(LinearRegression().fit(x, x @ [1.0, 2.0]).predict(x[:1]).round(3)[0])
