import json

value = {"b": [1, 2.5, None, True, "é\u2028🎉\n"], "a": {"x": -1e-7, "y": 10**30}, "n": float("inf")}
print(json.dumps(value), json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2))
print(json.loads('{"k": [1, 2.0, "\\u00e9", {"z": null}], "e": 1E3}'))
print(json.loads(json.dumps({1: 2, None: 3})), json.dumps("</script>"), json.dumps([1, 2], separators=(",", ":")))
for text in ("{", '{"a": }', "[1, 2", "nul", '"\t"'):
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        print(error, error.pos, error.lineno, error.colno)
try:
    json.dumps({"x": {1, 2}})
except TypeError as error:
    print(error)


class Complex(json.JSONEncoder):
    def default(self, thing):
        return [thing.real, thing.imag] if isinstance(thing, complex) else super().default(thing)


print(json.dumps(2 + 1j, cls=Complex), json.loads("[1.10]", parse_float=str))
