import sys

n, k = map(int, input().split())
rows = [list(map(int, sys.stdin.readline().split())) for _ in range(n)]
rest = sys.stdin.read().split()
print(n, k, rows, rest)
print(max(map(sum, rows)))
