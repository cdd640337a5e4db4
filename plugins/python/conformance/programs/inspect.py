import inspect
import ast


def documented(a, /, b: int = 1, *c, d, **e) -> str:
    """Says something."""
    return "x"


class K:
    pass


print(inspect.getsource(documented), end="")
print(inspect.signature(documented), inspect.getdoc(documented), inspect.getsource(K).strip())
tree = ast.parse("x = 1 + 2 * y")
print(ast.dump(tree), ast.unparse(tree), ast.literal_eval("[1, {2: 3}]"))
print(documented.__code__.co_filename, documented.__code__.co_firstlineno, documented.__module__)
print(len(inspect.getsource(ast.literal_eval)) > 100, inspect.currentframe().f_code.co_name)
