# Looks for a function: python3 find_function.py MODULE FUNCTION ANSWER, the last a file of JSON.
import importlib
import inspect
import json
import sys

_, module, function, wanted = sys.argv
answer = {"error": None, "kind": None, "callable": False, "others": []}
try:
    imported = importlib.import_module(module)
    if hasattr(imported, function):
        found = getattr(imported, function)
        answer.update(kind=type(found).__name__, callable=callable(found))
    defined = [name for name, value in vars(imported).items() if inspect.isfunction(value)]
    answer["others"] = [name for name in defined if getattr(imported, name).__module__ == module]
except BaseException as error:
    answer["error"] = f"{type(error).__name__}: {error}"
with open(wanted, "w", encoding="utf-8") as file:
    json.dump(answer, file)
