def fail(number):
    raise ValueError(number)


errors = []
for number in range(2):
    try:
        fail(number)
    except ValueError as error:
        errors.append(error)
try:
    raise ExceptionGroup("two", [*errors, ExceptionGroup("inner", [TypeError("t")])])
except* TypeError as group:
    print("types:", group.exceptions)
