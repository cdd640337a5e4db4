class Thing:
    colour = 1


try:
    Thing().color
except AttributeError as error:
    print(error)
value = 3
print(valeu)
