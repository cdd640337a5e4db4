"""Takes tests apart: what must be asked of the candidate, and what is compared with it.

Runs the tests' own statements for real, in an interpreter that never sees a candidate, and where one needs the
candidate leaves a hole. `assert f(n) == expected` becomes the step `f(3)`, which a candidate's run
evaluates, and the comparison `hole == expected`, which it never sees. With the holes' values at hand
the same walk is the judge: it evaluates what is left of each assertion.

A name that neither the tests nor Python define is the candidate's. What cannot be taken apart (a
loop over what the candidate returned, a test that hands the candidate's function to a helper) is weak.
"""

import ast
import builtins
import sys
from copy import deepcopy
from json import dumps, loads

from rlf_values import Refused, build, encode

MAX_STEPS = 10_000
HOLE = "_hole_{}"

# Asked of what the candidate returned where that happens to be no plain data, such as a generator.
CONVERTERS = frozenset(
    "all any bool dict float frozenset int len list max min next repr round set sorted str sum tuple".split()
)
PLAIN_METHODS = frozenset(
    name for kind in (str, bytes, list, tuple, dict, set, int, float) for name in dir(kind)
)
MUTABLE = (list, dict, set, bytearray)
SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Bad(Exception):
    """The row is wrong; no candidate could pass."""


class Unsplittable(Exception):
    """These tests cannot be taken apart."""


def told(error):
    return f"{type(error).__name__}: {error}"[:300]


def bound(node):
    """Names that a node binds anywhere in it."""
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.add(part.id)
        elif isinstance(part, ast.arg):
            names.add(part.arg)
        elif isinstance(part, DEFINITIONS):
            names.add(part.name)
        elif isinstance(part, ast.alias):
            names.add((part.asname or part.name).partition(".")[0])
        elif isinstance(part, ast.ExceptHandler) and part.name:
            names.add(part.name)
    return names


def free(node):
    """Names that a node reads and does not bind itself, in order of first use."""
    inner = set()
    if isinstance(node, (*SCOPES, *DEFINITIONS)):
        inner = bound(node)
    else:
        for part in ast.walk(node):
            if isinstance(part, (*SCOPES, ast.NamedExpr)):
                inner |= bound(part)
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    return [name for name in dict.fromkeys(names) if name not in inner]


def literal(value):
    """An expression for plain data of Python's own types."""
    kind = type(value)
    if kind in (type(None), bool, int, str, bytes, type(...)):
        return ast.Constant(value)
    if kind is float:
        if value - value == 0:
            return ast.Constant(value)
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    if kind is list:
        return ast.List([literal(item) for item in value], ast.Load())
    if kind is tuple:
        return ast.Tuple([literal(item) for item in value], ast.Load())
    if kind is set and value:
        return ast.Set([literal(item) for item in value])
    if kind is dict:
        return ast.Dict([literal(key) for key in value], [literal(item) for item in value.values()])
    raise Refused(f"a value of type {kind.__name__}")


class Split:
    """One walk over a row's tests. With `values` (step to data), the judge's."""

    def __init__(self, row, values=None):
        self.row = row
        self.values = values
        self.env = {"__builtins__": builtins, "__name__": "__main__"}
        self.theirs = set(row.get("entry") or [])
        """Names that are the candidate's, whatever else they could be."""
        self.kept = set()
        """Variables of the tests that live beside the candidate."""
        self.objects = set()
        """Those of them that are made by a class of the candidate's, and not what a call of it gave."""
        self.aliases = {}
        """Parameters that stand for a function of the candidate's."""
        self.lent = set()
        """Variables that the candidate was given and may have changed, if that is what is tested."""
        self.shown = set()
        """Variables that the candidate was given in an assertion: copies."""
        self.deferred = {}
        """Variables that are worked out from holes: what is left around them, and the holes."""
        self.functions = {}
        self.support = {}
        self.supported = set()
        self.steps = []
        self.asserts = []
        self.weak = {}
        self.verdicts = {}
        self.depth = 0
        self.holes = []

    # What a name is.

    def is_theirs(self, name, module=False):
        if name in self.aliases or name in self.kept or name in self.deferred:
            return True
        if name in self.theirs:
            return name not in self.env
        if name in self.env or hasattr(builtins, name):
            return False
        if module and name in sys.stdlib_module_names:
            # Many tests rely on what the candidate happens to import.
            statement = ast.parse(f"import {name}").body[0]
            self.execute(statement)
            self.record(statement)
            return False
        return True

    def tainted(self, node):
        modules = {
            part.value.id
            for part in ast.walk(node)
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
        }
        return any(self.is_theirs(name, name in modules) for name in free(node))

    # Running what is ours.

    def run(self, node, mode):
        if mode == "eval":
            tree = ast.Expression(node)
        else:
            tree = ast.Module([node], [])
        code = compile(ast.fix_missing_locations(tree), "<tests>", mode)
        try:
            return eval(code, self.env)
        except BaseException as error:
            raise Bad(f"`{ast.unparse(node)[:200]}` fails without any candidate: {told(error)}") from None

    def evaluate(self, node):
        return self.run(node, "eval")

    def execute(self, statement):
        self.run(statement, "exec")
        self.lent -= bound(statement)
        self.shown -= bound(statement)

    def record(self, statement):
        for name in bound(statement):
            self.support.setdefault(name, []).append(statement)
            self.supported.discard(name)

    # What the candidate's run is told.

    def emit(self, kind, node):
        if len(self.steps) == MAX_STEPS:
            raise Bad(f"more than {MAX_STEPS} steps")
        self.steps.append((kind, node))
        return len(self.steps) - 1

    def require(self, node):
        """Brings along what a node needs of the tests' own."""
        for name in free(node):
            if name in self.supported or self.is_theirs(name) or name not in self.env:
                continue
            if name not in self.support:
                raise Unsplittable(f"`{name}` cannot be brought to the candidate")
            self.supported.add(name)
            for statement in self.support[name]:
                self.require(statement)
                self.emit("do", statement)

    def inline(self, node):
        """The node as the candidate's run can evaluate it: our values written out."""
        if isinstance(node, ast.Name) and node.id in self.deferred:
            raise Unsplittable("a comparison's outcome is handed to the candidate")
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.aliases:
            if self.aliases[node.id] is None:
                raise Unsplittable(f"the tests' `{node.id}` calls the candidate")
            return self.aliases[node.id]
        if isinstance(node, ast.expr) and not isinstance(node, (ast.Starred, ast.Slice)) and not self.tainted(node):
            if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
                return node
            if not any(name in self.env for name in free(node)):
                return node
            try:
                return literal(self.evaluate(node))
            except (Refused, RecursionError):
                self.require(node)
                return node
        if isinstance(node, (*SCOPES, *DEFINITIONS)):
            if self.aliases.keys() & set(free(node)):
                raise Unsplittable("a parameter is used inside a function or comprehension")
            self.require(node)
            return node
        node = type(node)(**dict(ast.iter_fields(node)))
        for field, old in ast.iter_fields(node):
            if isinstance(old, list):
                setattr(node, field, [self.inline(item) if isinstance(item, ast.AST) else item for item in old])
            elif isinstance(old, ast.AST):
                setattr(node, field, self.inline(old))
        return node

    def passed(self, node):
        """Our variables that a candidate is given themselves, where it could change their values."""
        if isinstance(node, ast.expr) and not self.tainted(node):
            displays = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred)
            if not isinstance(node, ast.Name):
                parts = ast.iter_child_nodes(node) if isinstance(node, displays) else []
                return {name for part in parts for name in self.passed(part)}
            if node.id not in self.env or not isinstance(node.ctx, ast.Load):
                return set()
            value = self.env[node.id]
            if callable(value) or type(value) is type(ast):
                return set()
            try:
                return {node.id} if isinstance(value, MUTABLE) or not encode(value) else set()
            except Refused:
                return {node.id}
        return {name for part in ast.iter_child_nodes(node) for name in self.passed(part)}

    def hand_over(self, statement):
        """Variables that a statement is there to change live beside the candidate from now on."""
        for name in sorted(self.passed(statement)):
            try:
                written = literal(self.env[name])
            except Refused:
                self.require(ast.Name(name, ast.Load()))
            else:
                self.emit("do", ast.Assign([ast.Name(name, ast.Store())], written, lineno=1))
            self.kept.add(name)
            del self.env[name]

    def leave_to_candidate(self, statement):
        if not isinstance(statement, ast.Assign):
            self.hand_over(statement)
        # Where its value is kept, it may have been called for that alone.
        self.lent |= self.passed(statement)
        made = isinstance(statement, ast.Assign) and self.makes_object(statement.value)
        for name in bound(statement):
            self.kept.add(name)
            (self.objects.add if made else self.objects.discard)(name)
            self.deferred.pop(name, None)
            self.env.pop(name, None)
        self.emit("do", self.inline(statement))

    def assign(self, statement):
        """Only what the candidate itself is asked goes to its side: no operand that it is compared with."""
        value, targets = statement.value, statement.targets
        if self.is_asked(value) or not self.tainted(value):
            self.leave_to_candidate(statement)
            return
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            raise Unsplittable("several variables are worked out from what the candidate returned")
        self.defer(targets[0].id, value)

    def defer(self, name, value):
        outer, self.holes = self.holes, []
        rest = self.frozen(self.around(value), set(self.env))
        self.kept.discard(name)
        self.env.pop(name, None)
        self.deferred[name] = (rest, self.holes)
        self.holes = outer

    def hole(self, node, truth=False):
        """A place for a value that the candidate is asked for; with `truth` for its truth value, which any object has."""
        self.shown |= self.passed(node)
        asked = self.inline(node)
        if truth:
            asked = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), asked))
        step = self.emit("value", asked)
        self.holes.append(step)
        return ast.Name(HOLE.format(step), ast.Load())

    # An assertion: holes, and what is left around them.

    def around(self, node, truth=False):
        """The rest of a node around its holes. With `truth` only its truth value is used."""
        if not isinstance(node, ast.AST) or not self.tainted(node):
            return node
        if isinstance(node, ast.Name) and node.id in self.deferred:
            rest, holes = self.deferred[node.id]
            self.holes += [step for step in holes if step not in self.holes]
            return deepcopy(rest)
        if isinstance(node, ast.Name):
            return self.hole(node, truth)
        if isinstance(node, ast.Attribute):
            if self.makes_object(node.value) or not self.is_deferred(node.value):
                return self.hole(node, truth)
            raise Unsplittable("an attribute of what is worked out")
        if isinstance(node, ast.Call):
            return self.around_call(node, truth)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.unrolled(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, self.around(node.operand, True))
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, [self.around(value, truth) for value in node.values])
        if isinstance(node, (*SCOPES, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            raise Unsplittable(f"the candidate inside a {type(node).__name__}")
        return self.around_parts(node)

    def around_parts(self, node):
        node = type(node)(**dict(ast.iter_fields(node)))
        for field, old in ast.iter_fields(node):
            if isinstance(old, list):
                setattr(node, field, [self.around(item) for item in old])
            else:
                setattr(node, field, self.around(old))
        return node

    def is_deferred(self, node):
        return any(isinstance(part, ast.Name) and part.id in self.deferred for part in ast.walk(node))

    def is_function(self, node):
        """Whether this is something of the candidate's itself, not what a call of it gave."""
        if not isinstance(node, ast.Name) or node.id in self.kept or node.id in self.deferred:
            return False
        return self.is_theirs(node.id)

    def around_call(self, node, truth):
        func = node.func
        given = [*node.args, *[keyword.value for keyword in node.keywords]]
        if not self.tainted(func):
            if any(self.is_function(arg) for arg in given):
                raise Unsplittable("the candidate's own function is handed to another")
            converter = isinstance(func, ast.Name) and func.id in CONVERTERS and func.id not in self.env
            converter |= ast.unparse(func) == "asyncio.run"
            if converter and len(given) == 1 and self.is_asked(given[0]):
                return self.hole(node, truth)
            return self.around_parts(node)
        if isinstance(func, ast.Attribute) and not self.is_function(func.value):
            of_object = self.makes_object(func.value) or func.attr not in PLAIN_METHODS
            if self.is_deferred(func.value) or given and not of_object:
                # What it is asked with may be what is expected.
                around = ast.Attribute(self.around(func.value), func.attr, ast.Load())
                keywords = [ast.keyword(k.arg, self.around(k.value)) for k in node.keywords]
                return ast.Call(around, [self.around(arg) for arg in node.args], keywords)
        return self.hole(node, truth)

    def is_asked(self, node):
        """Whether a node as a whole is for the candidate's run."""
        if not isinstance(node, ast.Call) or not self.tainted(node.func):
            return isinstance(node, ast.Name) and node.id in self.kept
        func = node.func
        if self.is_deferred(func):
            return False
        plain = isinstance(func, ast.Attribute) and not self.is_function(func.value) and func.attr in PLAIN_METHODS
        return not plain or self.makes_object(func.value) or not (node.args or node.keywords)

    def makes_object(self, node):
        """By the custom of names: `Stack()` makes an object."""
        if isinstance(node, ast.Name) and node.id in self.kept:
            return node.id in self.objects
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        return name[:1].isupper()

    def unrolled(self, node):
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise Unsplittable("the candidate inside nested loops")
        loop = node.generators[0]
        if self.tainted(loop.iter):
            loop = ast.comprehension(loop.target, self.around(loop.iter), loop.ifs, 0)
            node = type(node)(node.elt, [loop])
            if self.tainted(ast.Tuple([node.elt, *loop.ifs], ast.Load())):
                raise Unsplittable("the candidate inside a loop over what it returned")
            return node
        parts = []
        outer = dict(self.env)
        for item in self.items(loop.iter):
            self.env["_item"] = item
            self.execute(ast.Assign([loop.target], ast.Name("_item", ast.Load()), lineno=1))
            if any(self.tainted(test) for test in loop.ifs):
                raise Unsplittable("the candidate in the condition of a loop")
            if all(self.evaluate(test) for test in loop.ifs):
                parts.append(self.frozen(self.around(node.elt), bound(loop.target)))
        for name in bound(loop.target):
            self.env.pop(name, None)
            if name in outer:
                self.env[name] = outer[name]
        listed = ast.List(parts, ast.Load())
        if isinstance(node, ast.SetComp):
            return ast.Call(ast.Name("set", ast.Load()), [listed], [])
        return listed

    def frozen(self, node, names):
        """With the present values of these names, which will have others when it is evaluated."""
        fresh = {}
        for name in sorted(names & set(free(node))):
            fresh[name] = f"_was_{len(self.env)}_{name}"
            self.env[fresh[name]] = self.env[name]
        node = deepcopy(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in fresh:
                part.id = fresh[part.id]
        return node

    def items(self, node):
        items = []
        for item in self.evaluate(node):
            items.append(item)
            if len(items) > MAX_STEPS:
                raise Bad(f"a loop over more than {MAX_STEPS} items")
        return items

    def check(self, statement):
        self.holes = []
        before = len(self.steps)
        if again := self.lent & set(free(statement.test)):
            raise Unsplittable(f"the candidate was given {sorted(again)} and may have been meant to change it")
        try:
            rest = self.around(statement.test, True)
        except Unsplittable:
            del self.steps[before:]
            # What went with the steps has to be brought again.
            self.supported.clear()
            raise
        if not self.holes:
            # Of the tests alone: as true with any candidate.
            if self.shown & set(free(statement.test)):
                raise Unsplittable("an assertion about what a candidate was given")
            if not self.evaluate(statement.test):
                raise Bad(f"`{ast.unparse(statement)[:200]}` fails without any candidate")
            return
        number = len(self.asserts)
        self.asserts.append({"holes": self.holes, **self.comparison(rest)})
        if self.values is not None and any(step in self.values for step in self.holes):
            self.verdicts[number] = self.judged(rest)

    def comparison(self, rest):
        """The comparison that the host's side makes by itself, or that the judge must make."""
        if self.values is not None:
            return {}

        def is_hole(node):
            return isinstance(node, ast.Name) and node.id == HOLE.format(self.holes[0])

        if is_hole(rest):
            return {"compare": "true"}
        if isinstance(rest, ast.UnaryOp) and isinstance(rest.op, ast.Not) and is_hole(rest.operand):
            return {"compare": "false"}
        if len(self.holes) == 1 and isinstance(rest, ast.Compare) and len(rest.ops) == 1:
            left, right = rest.left, rest.comparators[0]
            expected = right if is_hole(left) else left if is_hole(right) else None
            compare = {ast.Eq: "equal", ast.NotEq: "unequal"}.get(type(rest.ops[0]))
            if compare and expected is not None:
                value = self.evaluate(expected)
                try:
                    return {"compare": compare, "expected": loads(encode(value))}
                except Refused:
                    pass
        return {"compare": "judge"}

    def judged(self, rest):
        scope = dict(self.env)
        try:
            # One that is not there may be one that is not looked at: `f(1) == 1 or f(2) == 2`.
            for step in self.holes:
                if step in self.values:
                    scope[HOLE.format(step)] = build(self.values[step])
            code = compile(ast.fix_missing_locations(ast.Expression(rest)), "<judge>", "eval")
            return bool(eval(code, scope))
        except Exception:
            # As the assertion would have raised: `sorted` of what cannot be sorted.
            return False

    # Statements.

    def walk(self, statements):
        """True where a `return` was met."""
        for statement in statements:
            if self.statement(statement):
                return True
        return False

    def statement(self, node):
        if isinstance(node, ast.Assert):
            try:
                self.check(node)
            except Unsplittable as why:
                self.weak.setdefault(self.unit, str(why))
            return False
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.execute(node)
            self.record(node)
        elif isinstance(node, ast.FunctionDef) and not node.decorator_list:
            self.functions[node.name] = node
            if self.tainted(node):
                self.aliases[node.name] = None
            else:
                self.aliases.pop(node.name, None)
                self.execute(node)
                self.record(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and self.is_inlined(node.value):
            self.inlined(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and self.prints(node.value):
            pass
        elif isinstance(node, ast.Return):
            return True
        elif isinstance(node, ast.For) and self.has_tests(node):
            return self.loop(node)
        elif isinstance(node, ast.If) and not self.tainted(node.test):
            return self.walk(node.body if self.evaluate(node.test) else node.orelse)
        elif self.has_tests(node):
            raise Unsplittable(f"assertions inside a {type(node).__name__} statement")
        elif not self.tainted(node) and not (bound(node) & self.kept) and not (bound(node) & self.deferred.keys()):
            if not isinstance(node, (ast.Pass, ast.Global)):
                self.execute(node)
                self.record(node)
        elif isinstance(node, ast.Assign):
            self.rebind(node)
            if self.tainted(node):
                self.assign(node)
            else:
                self.execute(node)
                self.record(node)
        elif isinstance(node, (ast.ClassDef, ast.Delete)):
            self.leave_to_candidate(node)
        elif isinstance(node, ast.Expr) and self.is_asked(node.value):
            self.leave_to_candidate(node)
        else:
            raise Unsplittable(f"the candidate inside a {type(node).__name__} statement")
        return False

    def rebind(self, statement):
        """A variable that is given another value is no longer what it was."""
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id not in free(statement.value):
                self.kept.discard(target.id)
                self.deferred.pop(target.id, None)

    def has_tests(self, node):
        return any(
            isinstance(part, ast.Assert) or isinstance(part, ast.Call) and self.is_inlined(part)
            for part in ast.walk(node)
        )

    def is_inlined(self, call):
        if not isinstance(call.func, ast.Name) or call.func.id not in self.functions:
            return False
        return any(isinstance(part, ast.Assert) for part in ast.walk(self.functions[call.func.id]))

    def prints(self, call):
        return isinstance(call.func, ast.Name) and call.func.id == "print" and not self.tainted(call.func)

    def inlined(self, call):
        """`check(f)`: the function's body, its parameters standing for what they are given."""
        function = self.functions[call.func.id]
        arguments = function.args
        parameters = [arg.arg for arg in arguments.posonlyargs + arguments.args]
        plain = not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults)
        if not plain or call.keywords or len(call.args) != len(parameters) or self.depth == 8:
            raise Unsplittable(f"`{ast.unparse(call)}` is given more than plain arguments")
        outer = dict(self.aliases)
        for parameter, argument in zip(parameters, call.args):
            self.aliases.pop(parameter, None)
            if not self.tainted(argument):
                self.kept.discard(parameter)
                self.deferred.pop(parameter, None)
                self.env[parameter] = self.evaluate(argument)
            elif self.is_function(argument):
                self.aliases[parameter] = outer.get(argument.id, argument)
                self.env.pop(parameter, None)
            else:
                self.defer(parameter, argument)
        self.depth += 1
        self.walk(function.body)
        self.depth -= 1
        self.aliases = outer

    def loop(self, node):
        leaves = (ast.Break, ast.Continue, ast.Return)
        if self.tainted(node.iter) or any(isinstance(part, leaves) for part in ast.walk(node)):
            raise Unsplittable("a loop that the candidate's values steer, or that is left early")
        for item in self.items(node.iter):
            self.env["_item"] = item
            self.execute(ast.Assign([node.target], ast.Name("_item", ast.Load()), lineno=1))
            self.walk(node.body)
        return self.walk(node.orelse)

    # The row.

    def parse(self, source, where):
        try:
            return ast.parse(source).body
        except (SyntaxError, ValueError) as error:
            raise Bad(f"{where} does not parse: {told(error)}") from None

    def find_theirs(self, units):
        """A test that names nothing unknown is of a function that is called as one of Python's own."""
        self.theirs |= {
            node.name
            for node in self.parse(self.row.get("solution") or "", "the solution")
            if isinstance(node, DEFINITIONS)
        }
        tests = [node for body in units for node in body if isinstance(node, ast.Assert)]
        if self.theirs or any(self.tainted(node) for body in units for node in body):
            return
        for node in tests:
            for part in ast.walk(node):
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                    self.theirs.add(part.func.id)
                    return

    def all(self):
        row = self.row
        self.unit = -1
        for statement in self.parse(row.get("prelude") or "", "what precedes the candidate"):
            if not self.tainted(statement):
                self.execute(statement)
                self.record(statement)
        units = [self.parse(unit, f"test {number}") for number, unit in enumerate(row["tests"])]
        setup = self.parse(row.get("setup") or "", "the setup")
        self.find_theirs([setup, *units])
        try:
            for statement in setup:
                self.statement(statement)
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    # Candidates rely on them, as they may where all is one program.
                    self.emit("do", statement)
                    self.supported |= bound(statement)
        except Unsplittable as why:
            self.weak = {number: str(why) for number in range(len(units))}
            return
        for self.unit, body in enumerate(units):
            before = len(self.asserts)
            try:
                self.walk(body)
            except Unsplittable as why:
                self.weak.setdefault(self.unit, str(why))
            self.aliases = {name: None for name in self.functions if self.aliases.get(name, 0) is None}
            if len(self.asserts) == before and self.unit not in self.weak:
                raise Bad(f"test {self.unit} asks nothing of the candidate: {row['tests'][self.unit][:200]}")

    def plan(self):
        """The plan for the reward, as JSON can hold it."""
        return {
            "asserts": self.asserts,
            "weak": [{"unit": unit, "why": why} for unit, why in sorted(self.weak.items())],
            "steps": [kind == "value" for kind, _ in self.steps],
            "source": "".join(self.function(number, *step) for number, step in enumerate(self.steps)),
        }

    def function(self, number, kind, node):
        node = ast.fix_missing_locations(node)
        source = ast.unparse(node)
        if kind == "value":
            return f"\ndef _step_{number}():\n    return {source}\n"
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return f"\ndef _step_{number}():\n    exec({source!r}, globals())\n"
        names = ", ".join(sorted(self.names_of(node)))
        head = f"    global {names}\n" if names else ""
        body = "".join(f"    {line}\n" for line in source.splitlines())
        if "\n" in source and any(
            isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n" in part.value
            for part in ast.walk(node)
        ):
            # Indentation would change a text over several lines.
            return f"\ndef _step_{number}():\n    exec({source!r}, globals())\n"
        return f"\ndef _step_{number}():\n{head}{body}"

    @staticmethod
    def names_of(node):
        if isinstance(node, DEFINITIONS):
            return {node.name}
        return bound(node) - {
            name for part in ast.walk(node) if isinstance(part, SCOPES) for name in bound(part)
        }


def split(row):
    """The plan of a row, or what is wrong with it."""
    walk = Split(row)
    try:
        walk.all()
        return walk.plan()
    except Bad as error:
        return {"bad": str(error)}
    except RecursionError:
        return {"bad": "the tests are nested too deep"}


def judge(row, values):
    """Which assertions hold, of those that have values (step to data) for any of their holes."""
    walk = Split(row, values)
    walk.all()
    return [number for number, holds in walk.verdicts.items() if holds]


def main():
    with open("row.json", encoding="utf-8") as file:
        row = loads(file.read())
    if sys.argv[1:] == ["judge"]:
        with open("values.json", encoding="utf-8") as file:
            candidates = loads(file.read())
        for candidate, values in sorted(candidates.items(), key=lambda item: int(item[0])):
            holding = judge(row, {int(step): data for step, data in values.items()})
            print(dumps([int(candidate), holding]), flush=True)
        return
    with open("answer.json", "w", encoding="utf-8") as file:
        file.write(dumps(split(row)))
