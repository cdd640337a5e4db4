import sys

print('x')
sys.exit()
print('never')
