# Calls a function: python3 call_function.py MODULE FUNCTION ARGUMENTS ANSWER, the last two files of JSON.
import importlib
import json
import sys
import traceback


def called(module, function, arguments):
    result = getattr(importlib.import_module(module), function)(**arguments)
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(result)


_, module, function, given, wanted = sys.argv
with open(given, encoding="utf-8") as file:
    arguments = json.load(file)
try:
    answer = {"failed": False, "text": called(module, function, arguments)}
except Exception as error:
    answer = {"failed": True, "text": f"error: {type(error).__name__}: {error}"}
    # For the author of the function: the traceback, starting in the function.
    traceback.print_exception(error.with_traceback(error.__traceback__.tb_next.tb_next))
with open(wanted, "w", encoding="utf-8") as file:
    json.dump(answer, file)
