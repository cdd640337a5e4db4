print('x')
quit(5)
