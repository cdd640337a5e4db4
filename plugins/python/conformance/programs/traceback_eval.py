code = compile("def g():\n    return 1 / 0\n", "<made>", "exec")
exec(code)
try:
    eval("g()")
except ZeroDivisionError as error:
    import traceback

    traceback.print_tb(error.__traceback__)
exec("x = = 1")
