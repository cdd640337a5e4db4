# Makes the calls of a row: python3 run_row.py ROW RESULTS, both files of JSON. Gold calls are made twice, as an environment
# makes them and as FTRL's executor makes them.
import json
import sys
import types


def executor_globals():
    """The names at the top of the executor's own file, which a tool's body sees by accident."""
    from copy import deepcopy
    from hashlib import sha256
    from time import sleep

    return {"__name__": "utils.utils", "json": json, "deepcopy": deepcopy, "sha256": sha256, "sleep": sleep}


class Tool:
    def __init__(self, name, source):
        self.name = name
        self.code = compile(source, f"<function {name}>", "exec", dont_inherit=True)
        module = types.ModuleType(name)
        exec(self.code, vars(module))
        self.function = vars(module).get(name)
        if not callable(self.function):
            raise NameError(f"it defines no function {name}")

    def clean(self, arguments):
        """A call to the source as a module, which is executed once."""
        result = self.function(**arguments)
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    def published(self, arguments):
        """A call to the source inside a function, executed anew: the body sees neither imports nor other definitions."""
        scope = executor_globals()
        local = {"name": self.name, "arguments": arguments, "code": self.code, "kwargs": {}}
        exec(self.code, scope, local)
        result = eval(self.name, scope, local)(**arguments)
        if type(result) in (dict, list):
            return json.dumps(result, ensure_ascii=False)
        return result if type(result) is str else str(result)


def made(call, arguments):
    try:
        return [call(arguments), False]
    except MemoryError:
        raise
    except BaseException as fault:
        try:
            return [f"error: {type(fault).__name__}: {fault}", True]
        except BaseException:
            return ["error: an exception without a text", True]


_, given, wanted = sys.argv
with open(given, encoding="utf-8") as file:
    row = json.load(file)
answer = {"broken": {}, "clean": [], "published": []}
tools = {}
for name, source in row["tools"]:
    try:
        tools[name] = Tool(name, source)
    except MemoryError:
        raise
    except BaseException as fault:
        answer["broken"][name] = f"{type(fault).__name__}: {fault}"
if not answer["broken"]:
    for name, arguments in row["gold"]:
        # A function may change its arguments, so that each call gets its own.
        answer["published"].append(made(tools[name].published, json.loads(json.dumps(arguments))))
    for name, arguments in row["gold"] + row["others"]:
        answer["clean"].append(made(tools[name].clean, arguments))
with open(wanted, "w", encoding="utf-8") as file:
    json.dump(answer, file)
