"""From an annotation to the node that validates by it."""

import collections
import collections.abc
import datetime
import enum
import re
import sys
import types
import typing

from .choices import EnumNode, LiteralNode, NullableNode, TaggedNode, UnionNode
from .containers import (
    FixedTupleNode, FrozenSetNode, ListNode, SequenceNode, SetNode, TupleNode, dictionary, unless_any,
)  # fmt: skip
from .errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from .fields import Constraint, FieldInfo
from .functional import BeforeValidator, DescribedNode, DumpedNode, FunctionNode, InstanceOf, PlainSerializer, RuleNode, WithJsonSchema
from .node import AnyNode
from .objects import CallableNode, ClassNode, DecimalNode, InstanceNode, PathNode, UUIDNode
from .records import DataclassNode, TypedDictNode
from .scalars import BoolNode, BytesNode, FloatNode, IntNode, NoneNode, StrNode
from .temporal import DateNode, DateTimeNode, TimeDeltaNode, TimeNode

_SIMPLE = {
    None: NoneNode, type(None): NoneNode, bool: BoolNode, int: IntNode, float: FloatNode, str: StrNode, bytes: BytesNode,
    datetime.datetime: DateTimeNode, datetime.date: DateNode, datetime.time: TimeNode, datetime.timedelta: TimeDeltaNode,
    typing.Any: AnyNode, object: AnyNode, list: ListNode, set: SetNode, frozenset: FrozenSetNode, tuple: TupleNode,
    typing.Hashable: AnyNode,
}  # fmt: skip
_ONE_ITEM = {
    list: ListNode, set: SetNode, frozenset: FrozenSetNode, collections.abc.Set: SetNode,
    collections.abc.MutableSet: SetNode, collections.abc.Sequence: SequenceNode, collections.abc.Iterable: SequenceNode,
    collections.abc.MutableSequence: ListNode, collections.abc.Collection: SequenceNode, collections.deque: SequenceNode,
}  # fmt: skip
_DICTIONARIES = {
    dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.OrderedDict, collections.defaultdict,
    collections.Counter,
}  # fmt: skip
_FORWARD = typing.ForwardRef


class Names:
    """The namespaces of names in annotations that are text."""

    def __init__(self, module=None, local=None, config=None):
        self.globals = vars(sys.modules[module]) if module in sys.modules else {}
        self.local = local or {}
        self.config = config or {}

    def resolve(self, text):
        try:
            return eval(text, self.globals, self.local)
        except NameError as error:
            raise PydanticUndefinedAnnotation(getattr(error, "name", None) or text, str(error)) from None

    def inside(self, module, local):
        """The names of another module, under the same config."""
        return Names(module, local, self.config)

    def node(self, annotation, metadata, discriminator):
        return annotated(annotation, metadata, self, discriminator)


def node_for(annotation, names):
    """The node of an annotation. `names` knows what text in it means."""
    if isinstance(annotation, str):
        return node_for(names.resolve(annotation), names)
    if isinstance(annotation, _FORWARD):
        return node_for(names.resolve(annotation.__forward_arg__), names)
    try:
        simple = _SIMPLE.get(annotation)
    except TypeError:
        simple = None
    if simple is not None:
        return configured(simple, names)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        return generic(annotation, origin, arguments, names)
    if isinstance(annotation, type):
        return of_class(annotation, names)
    if isinstance(annotation, typing.TypeVar):
        return node_for(annotation.__bound__ or typing.Any, names)
    if hasattr(annotation, "__supertype__"):
        return node_for(annotation.__supertype__, names)
    if type(annotation).__name__ == "TypeAliasType":
        return node_for(annotation.__value__, names)
    # Bare aliases of `typing`, such as `List` and `Callable`, have an origin and were handled above.
    raise unknown(annotation)


def configured(kind, names):
    config = names.config
    if kind is StrNode:
        rules = {"strip_whitespace": "str_strip_whitespace", "to_lower": "str_to_lower", "to_upper": "str_to_upper", "min_length": "str_min_length", "max_length": "str_max_length", "coerce_numbers_to_str": "coerce_numbers_to_str"}  # fmt: skip
        return StrNode(**{rule: config[name] for rule, name in rules.items() if config.get(name)})
    if kind is FloatNode:
        return FloatNode(allow_inf_nan=config.get("allow_inf_nan", True))
    return kind()


def generic(annotation, origin, arguments, names):
    if origin is typing.Annotated:
        return annotated(arguments[0], arguments[1:], names)
    if origin is typing.Union or origin is types.UnionType:
        return union(arguments, names)
    if origin is typing.Literal:
        return LiteralNode(list(flat(arguments)))
    if origin in _ONE_ITEM:
        kind = _ONE_ITEM[origin]
        return kind(unless_any(node_for(arguments[0], names)) if arguments else None)
    if origin is tuple:
        if not arguments:
            return FixedTupleNode([]) if annotation not in (typing.Tuple, tuple) else TupleNode()
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return TupleNode(unless_any(node_for(arguments[0], names)))
        if arguments == ((),):
            return FixedTupleNode([])
        return FixedTupleNode([node_for(argument, names) for argument in arguments])
    if origin in _DICTIONARIES:
        if origin is collections.Counter and len(arguments) == 1:
            arguments = (arguments[0], int)
        key, item = arguments or (typing.Any, typing.Any)
        return dictionary(node_for(key, names), node_for(item, names))
    if origin is collections.abc.Callable:
        return CallableNode()
    if origin is type:
        bound = arguments[0] if arguments and isinstance(arguments[0], type) else None
        return ClassNode(bound)
    if origin in (typing.Final, typing.ClassVar) or getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        return node_for(arguments[0], names)
    if origin is re.Pattern:
        return InstanceNode(re.Pattern)
    if isinstance(origin, type):
        return of_class(origin, names)
    raise unknown(annotation)


def flat(values):
    """The values of a literal, those of literals inside it too."""
    for value in values:
        if typing.get_origin(value) is typing.Literal:
            yield from flat(typing.get_args(value))
        else:
            yield value


def union(arguments, names, left_to_right=False):
    members = [argument for argument in arguments if argument is not type(None) and argument is not None]
    nodes = [node_for(member, names) for member in members]
    found = nodes[0] if len(nodes) == 1 else UnionNode(nodes, left_to_right)
    return NullableNode(found) if len(members) < len(arguments) else found


def of_class(kind, names):
    made = getattr(kind, "__pydantic_node_for__", None)
    if made is not None:
        return made()
    if kind in _DICTIONARIES or kind in _ONE_ITEM:
        return generic(kind, kind, (), names)
    if issubclass(kind, enum.Enum):
        return EnumNode(kind, names.config.get("use_enum_values", False))
    if hasattr(kind, "__total__") and issubclass(kind, dict):
        return TypedDictNode(kind, names)
    if hasattr(kind, "__dataclass_fields__"):
        return DataclassNode(kind, names)
    place = kind.__module__
    if kind.__name__ == "Decimal" and place in ("decimal", "_decimal", "_pydecimal"):
        return DecimalNode()
    if place == "uuid" and kind.__name__ == "UUID":
        return UUIDNode(kind)
    if place.startswith("pathlib"):
        return PathNode(kind)
    if kind is re.Pattern:
        return InstanceNode(kind)
    if kind is type:
        return ClassNode()
    if kind is collections.abc.Callable:
        return CallableNode()
    if names.config.get("arbitrary_types_allowed"):
        return InstanceNode(kind)
    raise unknown(kind)


def unknown(annotation):
    return PydanticSchemaGenerationError(
        f"Unable to generate pydantic-core schema for {annotation!r}. Set `arbitrary_types_allowed=True` in the "
        "model_config to ignore this error or implement `__get_pydantic_core_schema__` on your type to fully support it."
        "\n\nIf you got this error by calling handler(<some type>) within `__get_pydantic_core_schema__` then you likely need "
        "to call `handler.generate_schema(<some type>)` since we do not call `__get_pydantic_core_schema__` on "
        "`<some type>` otherwise to avoid infinite recursion."
    )


def annotated(annotation, metadata, names, discriminator=None):
    """The node of an annotation with what stands beside it."""
    for item in metadata:
        if isinstance(item, InstanceOf):
            return InstanceNode(annotation)
        if isinstance(item, FieldInfo) and item.discriminator is not None:
            discriminator = item.discriminator
    flattened = [inner for item in metadata for inner in (item.metadata if isinstance(item, FieldInfo) else (item,))]
    mode = next((rule.rules["union_mode"] for rule in flattened if isinstance(rule, Constraint) and "union_mode" in rule.rules), None)
    if mode == "left_to_right":
        if isinstance(annotation, (str, _FORWARD)):
            annotation = names.resolve(getattr(annotation, "__forward_arg__", annotation))
        node = union(typing.get_args(annotation), names, left_to_right=True)
    else:
        node = node_for(annotation, names)
    if discriminator is not None:
        node = tagged(node, discriminator)
    for item in flattened:
        node = applied(node, item)
    return node


def tagged(node, field):
    if isinstance(node, NullableNode):
        return NullableNode(tagged(node.inner, field))
    members = {}
    for member in node.members if isinstance(node, UnionNode) else [node]:
        for tag in typing.get_args(member.model.model_fields[field].annotation):
            members[tag] = member
    return TaggedNode(field, members)


def applied(node, item):
    """The node with one thing of an annotation's metadata."""
    if isinstance(item, Constraint):
        return ruled(node, {name: rule for name, rule in item.rules.items() if name != "union_mode" and rule is not None})
    if isinstance(item, BeforeValidator):
        return FunctionNode(node, item.func, item.mode)
    if isinstance(item, PlainSerializer):
        return DumpedNode(node, item)
    if isinstance(item, WithJsonSchema):
        return DescribedNode(node, item.json_schema)
    return node


def ruled(node, rules):
    """The node with rules: its own where its type has such, around it where not."""
    if not rules:
        return node
    if isinstance(node, NullableNode):
        return NullableNode(ruled(node.inner, rules))
    allowed = getattr(node, "ALLOWED", frozenset())
    own = {name: rule for name, rule in rules.items() if name in allowed}
    if own:
        node = with_rules(node, own)
    rest = {name: rule for name, rule in rules.items() if name not in own and name not in ("strict", "fail_fast", "allow_inf_nan")}
    if not rest:
        return node
    if isinstance(node, FunctionNode):
        return FunctionNode(ruled(node.inner, rest), node.function, node.mode, node.field)
    if "pattern" in rest:
        raise TypeError(f"Unable to apply constraint 'pattern' to schema of type '{node.label}'")
    return RuleNode(node, rest)


def with_rules(node, rules):
    """A copy of the node with more rules."""
    made = object.__new__(type(node))
    vars(made).update(vars(node))
    if isinstance(node, StrNode):
        kept = dict(node.rules) | {"strict": node.strict, "pattern": node.pattern, "coerce_numbers_to_str": node.coerce}
        made.__init__(**(kept | rules))
    elif hasattr(node, "bounds"):
        bounds = dict(rules)
        if "strict" in bounds:
            made.strict = bounds.pop("strict")
        if "allow_inf_nan" in bounds:
            made.allow_inf_nan = bounds.pop("allow_inf_nan")
        made.bounds = node.bounds | bounds
    else:
        vars(made).update(rules)
    return made
