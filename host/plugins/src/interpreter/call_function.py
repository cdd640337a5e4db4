# Calls one function with arguments from a file, and leaves what it returns in another.
import importlib
import json
import sys
import traceback


def called(module, name, arguments):
    function = getattr(importlib.import_module(module), name)
    result = function(**arguments)
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(result)


with open("/arguments.json", encoding="utf-8") as file:
    arguments = json.load(file)
try:
    answer = {"failed": False, "text": called(sys.argv[1], sys.argv[2], arguments)}
except Exception as error:
    text = "".join(traceback.format_exception_only(error)).strip()
    answer = {"failed": True, "text": "error: " + text}
with open("/answer.json", "w", encoding="utf-8") as file:
    json.dump(answer, file)
