import statistics
from statistics import NormalDist

data = [1, 2, 2, 3, 4, 7, 9]
print(statistics.mean(data), statistics.median(data), statistics.mode(data), statistics.stdev(data), statistics.pvariance(data))
print(statistics.quantiles(data), statistics.linear_regression([1, 2, 3], [2, 4, 7]), statistics.fmean([0.1] * 3))
print(statistics.multimode("aabbc"), statistics.harmonic_mean([40, 60]), statistics.correlation([1, 2, 3], [3, 2, 1]))
print(NormalDist(100, 15).cdf(120), NormalDist(0, 1).samples(2, seed=3))
