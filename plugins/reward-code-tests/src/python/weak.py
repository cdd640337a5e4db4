"""Runs tests that cannot be taken apart beside the candidate.

The tests' builtins, modules and compiled code are taken before the candidate runs, and what runs afterwards looks up no
name that a candidate could bind: all of it is in variables of functions. What the candidate's functions and methods return
is rebuilt from plain data; a verdict carries a word that only this module was told. All of it lies in one interpreter
with the candidate all the same: who walks the frames above a call, or the closure of a function that was wrapped here, can read
the word and the tests. That is why such tests are called weak.
"""

import ast
import builtins
import collections
import datetime
import decimal
import fractions
import gc
import io
import os
import sys
import types
from json import loads

MARK = "\x1e"

IMMUTABLE = 1 << 8
"""The flag of types whose attributes cannot be set: `Py_TPFLAGS_IMMUTABLETYPE`."""

VALUED = frozenset(("__call__", "__enter__", "__getattr__", "__getitem__", "__iter__", "__next__"))
"""Special methods that hand values out."""

# Where output goes that is not the protocol's. Made of functions in C: those of this module would lead to its variables.
_Nowhere = type("Nowhere", (io.RawIOBase,), {"writable": True.__bool__, "write": len})


def _imported(trees):
    """The modules that tests import, each with a copy of what is in it now."""
    names = {"math"}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    copies = {}
    for name in sorted(names):
        try:
            __import__(name)
        except Exception:
            continue
        copy = types.ModuleType(name)
        copy.__dict__.update(vars(sys.modules[name]))
        copies[name] = copy
    return copies


def _importer(copies, real=__import__):
    def __import__(name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0 and name in copies and (fromlist or "." not in name):
            return copies[name]
        return real(name, globals, locals, fromlist, level)

    return __import__


def _restorer(modules):
    """Puts back what can be changed in functions, classes and variables of modules that the tests use."""
    functions, classes, variables = {}, {}, []
    contents, put, take, absent = type.__dict__["__dict__"].__get__, type.__setattr__, type.__delattr__, object()
    fixed = ("__dict__", "__weakref__", "__doc__", "__abstractmethods__", "_abc_impl")

    def note(value):
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if type(value) is types.FunctionType:
            kept = dict(value.__kwdefaults__) if value.__kwdefaults__ else None
            functions[id(value)] = (value, value.__code__, value.__defaults__, kept)
        elif isinstance(value, type):
            for kind in value.__mro__:
                if id(kind) not in classes and not kind.__flags__ & IMMUTABLE:
                    classes[id(kind)] = (kind, {k: v for k, v in vars(kind).items() if k not in fixed})
                    for member in vars(kind).values():
                        note(member)

    for module in modules:
        variables.append((vars(module), dict(vars(module))))
        for value in list(vars(module).values()):
            note(value)
    functions, classes = list(functions.values()), list(classes.values())

    def restore():
        for now, before in variables:
            for name, value in before.items():
                if now.get(name, absent) is not value:
                    now[name] = value
        for kind, before in classes:
            now = contents(kind)
            for name, value in before.items():
                if now.get(name, absent) is not value:
                    put(kind, name, value)
            for name in [*now]:
                if name not in before and name not in fixed:
                    take(kind, name)
        for function, code, defaults, keywords in functions:
            if function.__code__ is not code:
                function.__code__ = code
            if function.__defaults__ is not defaults:
                function.__defaults__ = defaults
            if keywords is not None:
                function.__kwdefaults__ = {**keywords}

    return restore


def _warden(restore):
    """`asked` wraps a function of the candidate's, `tamed` a class: what they hand to the tests is plain data."""
    # Every name that is used after the candidate ran.
    kind_of, index, object_, type_, error, stop, next_ = type, id, object, type, TypeError, StopIteration, next
    tuple_, set_, frozen, dict_, enumerate_, slice_ = tuple, set, frozenset, dict, enumerate, slice
    deque, counter, ordered, missing = (
        collections.deque,
        collections.Counter,
        collections.OrderedDict,
        collections.defaultdict,
    )
    fraction, namespace, numbered, valued = fractions.Fraction, types.SimpleNamespace, dict.fromkeys, VALUED
    function_type, static, of_class = types.FunctionType, staticmethod, classmethod
    in_list, in_tuple, in_set, in_frozenset = list.__iter__, tuple.__iter__, set.__iter__, frozenset.__iter__
    in_deque, items_of, part_of_bytes = deque.__iter__, dict.items, bytes.__getitem__
    mro, contents = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
    put, flags, immutable = type.__setattr__, type.__dict__["__flags__"].__get__, IMMUTABLE
    depth = 0

    def all_of(items):
        return [purify(item) for item in items]

    def pairs_of(items):
        return [(purify(key), purify(item)) for key, item in items]

    def walked(iterator):
        step = asked(next_)
        while True:
            try:
                value = step(iterator)
            except stop:
                return
            yield value

    async def awaited(coroutine):
        return purify(await coroutine)

    # By identity: a metaclass can say that its classes equal others.
    as_it_is = {
        id(kind)
        for kind in (
            *(type(None), bool, int, float, complex, str, bytes, range, type(...), decimal.Decimal),
            *(datetime.timedelta, datetime.date, datetime.time, datetime.datetime),
        )
    }
    rebuilt = {
        int: int.__pos__,
        float: float.__pos__,
        complex: complex.__pos__,
        str: str.__str__,
        bytes: lambda value: part_of_bytes(value, slice_(None)),
        bytearray: bytearray.copy,
        list: lambda value: all_of(in_list(value)),
        tuple: lambda value: tuple_(all_of(in_tuple(value))),
        set: lambda value: set_(all_of(in_set(value))),
        frozenset: lambda value: frozen(all_of(in_frozenset(value))),
        dict: lambda value: dict_(pairs_of(items_of(value))),
        type({}.keys()): lambda value: numbered(all_of(value)).keys(),
        type({}.values()): lambda value: dict_(enumerate_(all_of(value))).values(),
        type({}.items()): lambda value: dict_(pairs_of(value)).items(),
        deque: lambda value: deque(all_of(in_deque(value)), value.maxlen),
        counter: lambda value: counter(dict_(pairs_of(items_of(value)))),
        ordered: lambda value: ordered(pairs_of(items_of(value))),
        missing: lambda value: missing(
            value.default_factory and asked(value.default_factory), pairs_of(items_of(value))
        ),
        fraction: lambda value: fraction(purify(value._numerator), purify(value._denominator)),
        namespace: lambda value: namespace(**dict_(pairs_of(items_of(value.__dict__)))),
        types.CoroutineType: awaited,
    }
    called = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
    rebuilt = {id(kind): rule for kind, rule in rebuilt.items()}
    native = {id(kind) for kind in (object, type, *object.__subclasses__())}
    known = set(native)
    rule_for = rebuilt.get

    def purify(value):
        kind = kind_of(value)
        if index(kind) in as_it_is:
            return value
        for base in mro(kind):
            # A subclass that compares as what it extends is that: a named tuple is a tuple.
            rule = rule_for(index(base))
            if rule is not None:
                return rule(value)
            if base is not object_ and "__eq__" in contents(base) and kind not in called:
                raise error("the candidate returned an object that compares in a way of its own")
        if kind in called:
            return asked(value)
        if index(kind) in native and "__next__" in contents(kind):
            return walked(value)
        tamed(kind)
        if type_ in mro(kind):
            tamed(value)
        return value

    def asked(function):
        def call(*args, **kwargs):
            nonlocal depth
            if depth:
                # The candidate's own business.
                return function(*args, **kwargs)
            depth = 1
            try:
                value = function(*args, **kwargs)
            finally:
                depth = 0
                restore()
            return purify(value)

        return call

    def reading(original):
        def read(self, name):
            value = original(self, name)
            return value if depth else purify(value)

        return read

    def tamed(kind):
        for base in mro(kind):
            # What is written in C cannot be changed, and need not.
            if index(base) in known or flags(base) & immutable:
                continue
            known.add(index(base))
            put(base, "__getattribute__", reading(base.__getattribute__))
            for name, member in [*contents(base).items()]:
                made = kind_of(member)
                if made is function_type and name in valued:
                    put(base, name, asked(member))
                elif made is static or made is of_class:
                    put(base, name, made(asked(member.__func__)))

    return asked, tamed


def _close_doors():
    """Ways to the tests' frames and objects that no solution needs."""
    for name in ("settrace", "setprofile", "breakpointhook"):
        delattr(sys, name)
    for name in ("get_objects", "get_referrers", "get_referents"):
        delattr(gc, name)
    if hasattr(sys, "monitoring"):
        for name in ("use_tool_id", "register_callback", "set_events", "set_local_events"):
            delattr(sys.monitoring, name)


def main(write=os.write, leave=os._exit):
    with open("row.json", encoding="utf-8") as file:
        row = loads(file.read())
    os.remove("row.json")
    word, mark = row.pop("word"), MARK

    def say(what):
        data = f"\n{mark}{what}\n".encode("ascii")
        while data:
            data = data[write(1, data):]

    with open("candidate.py", "rb") as file:
        source = file.read()
    prelude, setup, *tests = [ast.parse(text) for text in (row["prelude"], row["setup"], *row["tests"])]
    copies = _imported([prelude, setup, *tests])
    trusted = dict(vars(builtins))
    trusted["__import__"] = _importer(copies)
    ours = {"__builtins__": trusted, "__name__": "__main__"}
    try:
        exec(compile(prelude, "<prelude>", "exec"), ours)
    except Exception:
        pass
    codes = [compile(tree, "<tests>", "exec") for tree in (setup, *tests)]
    module = types.ModuleType("candidate")
    module.__file__ = "candidate.py"
    sys.modules["candidate"] = module
    sys.stdout = sys.stderr = io.TextIOWrapper(io.BufferedWriter(_Nowhere()), errors="replace")
    _close_doors()
    sealed = {"collections", "fractions", *copies} - {"builtins", "sys"}
    asked, tamed = _warden(_restorer([sys.modules[name] for name in sorted(sealed)]))
    # As in the warden.
    run, anything, is_one, class_, can_call = exec, BaseException, isinstance, type, callable
    wanted, entry, numbers = row["wanted"], row["entry"], range(len(tests))
    try:
        run(compile(source, "candidate.py", "exec"), module.__dict__)
    except anything:
        leave(0)
    say("loaded")
    scope = {}
    for name, value in module.__dict__.items():
        if name[:2] != "__":
            if is_one(value, class_):
                tamed(value)
            scope[name] = asked(value) if can_call(value) and not is_one(value, class_) else value
    for name, value in ours.items():
        if name not in entry:
            scope[name] = value
    try:
        run(codes[0], scope)
    except anything:
        leave(0)
    for number in numbers:
        if number not in wanted:
            continue
        say(f"started {number}")
        try:
            run(codes[number + 1], scope)
        except anything:
            say(f"failed {number}")
        else:
            say(f"passed {number} {word}")
    leave(0)
