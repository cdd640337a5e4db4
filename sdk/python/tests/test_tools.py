"""Tools: definitions, arguments and results."""

import dataclasses
import enum
import math
import pathlib
import sys
import typing
import unittest
from typing import Annotated, Literal, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import rlf  # noqa: E402
from rlf import testing, tools  # noqa: E402
from rlf.schemas import schema  # noqa: E402


class Unit(enum.Enum):
    METRE = "m"
    MILE = "mi"


@dataclasses.dataclass
class Point:
    """A place.

    Args:
        x: To the right.
    """

    x: float
    y: float = 0.0


class Options(typing.TypedDict, total=False):
    limit: int
    near: typing.Required[Point]


class Tools(unittest.TestCase):
    def setUp(self):
        testing.forget()

    def test_a_definition_comes_from_signature_and_docstring(self):
        @rlf.tool(pure=True)
        def convert(length: float, to: Unit = Unit.METRE, digits: Annotated[int, {"minimum": 0}] = 2) -> str:
            """Converts a length.

            The result is rounded.

            Args:
                length (float): In metres,
                    at least 0.
                to: The unit.

            Returns:
                The length with its unit.
            """

        found = tools.registered()["convert"]
        self.assertEqual(found.description, "Converts a length.\n\nThe result is rounded.")
        self.assertEqual(found.hints, ("read-only", "idempotent", "deterministic"))
        self.assertEqual(
            found.input_schema,
            {
                "type": "object",
                "properties": {
                    "length": {"type": "number", "description": "In metres, at least 0."},
                    "to": {"type": "string", "enum": ["m", "mi"], "description": "The unit.", "default": "m"},
                    "digits": {"type": "integer", "minimum": 0, "default": 2},
                },
                "required": ["length"],
                "additionalProperties": False,
            },
        )
        self.assertIsNone(found.output_schema)

    def test_an_observation_promises_no_structured_result(self):
        def picture() -> rlf.Image:
            """Draws."""

        def shown() -> rlf.Observation:
            """Shows."""

        for function in (picture, shown):
            self.assertIsNone(tools.made_from(function).output_schema, function.__name__)

    def test_every_annotation_of_the_table_has_its_schema(self):
        point = {
            "description": "A place.",
            "type": "object",
            "properties": {
                "x": {"type": "number", "description": "To the right."},
                "y": {"type": "number", "default": 0.0},
            },
            "required": ["x"],
            "additionalProperties": False,
        }
        for annotation, expected in [
            (typing.Any, {}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (typing.Sequence[str], {"type": "array", "items": {"type": "string"}}),
            (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
            (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
            (
                tuple[int, str],
                {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
            ),
            (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
            (dict, {"type": "object", "additionalProperties": True}),
            (Optional[int], {"type": ["integer", "null"]}),
            (int | list[int], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Annotated[str, "A name"], {"type": "string", "description": "A name"}),
            (Point, point),
        ]:
            self.assertEqual(schema(annotation), expected, annotation)
        self.assertEqual(schema(Options)["required"], ["near"])

    def test_a_typed_dict_has_its_required_keys_where_annotations_are_text(self):
        Text = typing.TypedDict("Text", {"a": "typing.NotRequired[int]", "b": "str"})
        Partial = typing.TypedDict("Partial", {"a": "int", "b": "Annotated[typing.Required[str], 'A name']"}, total=False)
        self.assertEqual((schema(Text)["required"], schema(Partial)["required"]), (["b"], ["b"]))

    def test_arguments_arrive_as_their_types(self):
        seen = {}

        @rlf.tool
        def take(point: Point, unit: Unit, ids: set[int], pair: tuple[int, Point], options: Options, way: Point | str | None = None):
            seen.update(locals())

        testing.call(
            "take",
            {
                "point": {"x": 1},
                "unit": "mi",
                "ids": [1, 2.0, 1],
                "pair": [1, {"x": 2, "y": 3}],
                "options": {"near": {"x": 5}},
                "way": {"x": 4},
            },
        )
        self.assertEqual(seen["point"], Point(1.0))
        self.assertIsInstance(seen["point"].x, float)
        self.assertIs(seen["unit"], Unit.MILE)
        self.assertEqual(seen["ids"], {1, 2})
        self.assertEqual(seen["pair"], (1, Point(2.0, 3.0)))
        self.assertEqual(seen["options"], {"near": Point(5.0)})
        self.assertEqual(seen["way"], Point(4.0))

    def test_a_union_is_the_first_type_whose_form_the_value_has(self):
        Circle = dataclasses.make_dataclass("Circle", [("kind", Literal["circle"]), ("size", float)])
        Square = dataclasses.make_dataclass("Square", [("kind", Literal["square"]), ("size", float)])
        Cube = dataclasses.make_dataclass("Cube", [("kind", Literal["square"]), ("size", float), ("depth", float)])

        @rlf.tool
        def kind(one: Circle | Square | Cube, many: list[Circle] | list[Square], names: set[int] | list[str]) -> str:
            return " ".join(type(value).__name__ for value in (one, many[0], names))

        square = {"kind": "square", "size": 2}
        arguments = {"one": square | {"depth": 1}, "many": [square], "names": ["a"]}
        self.assertEqual(testing.call("kind", arguments).text, "Cube Square list")

    def test_a_default_that_json_lacks_is_not_shown_and_keys_are_limited(self):
        @rlf.tool
        def far(most: float = float("inf"), names: list = [Unit.METRE], by: dict[Unit, int] = {}, context: rlf.Context | None = None):
            """Measures.

            Args:
                most: The limit.

            Warnings:
                It is slow.
            """
            return [context.seed, {None: 1}]

        found = testing.schema("far")["properties"]
        self.assertEqual(found["most"], {"type": "number", "description": "The limit."})
        self.assertNotIn("default", found["names"])
        self.assertEqual(found["by"]["propertyNames"], {"type": "string", "enum": ["m", "mi"]})
        self.assertNotIn("context", found)
        self.assertEqual(testing.call("far", {}, seed=3).text, '[3,{"null":1}]')

        @rlf.tool
        def wrong(which: int) -> list:
            return [[math.nan], {1: 2, "1": 3}][which]

        for which, message in enumerate(["NaN or infinity", "the same text"]):
            with self.assertRaisesRegex(ValueError, message):
                testing.call("wrong", {"which": which})

    def test_a_result_is_what_the_annotation_promises(self):
        @rlf.tool
        def count(what: str) -> dict[str, int]:
            return {"words": {"words": 1}, "text": "one", "parts": {"words": "one"}}[what]

        self.assertEqual(testing.call("count", {"what": "words"}).text, '{"words":1}')
        for what in ("text", "parts"):
            with self.assertRaisesRegex(TypeError, "its annotation does not promise"):
                testing.call("count", {"what": what})

        @dataclasses.dataclass
        class Square:
            side: float
            area: float = dataclasses.field(init=False)

            def __post_init__(self):
                self.area = self.side**2

        def square(side: float):
            return Square(side)

        square.__annotations__["return"] = Square
        rlf.tool(square)
        self.assertEqual(testing.call("square", {"side": 2}).text, '{"side":2.0,"area":4.0}')

    def test_a_failure_is_read_and_a_bug_is_not(self):
        @rlf.tool
        def city(name: str) -> str:
            if name == "":
                raise rlf.Failure("name a city")
            return {"paris": "France"}[name]

        self.assertEqual(testing.call("city", {"name": ""}), testing.Result("name a city", True, {}))
        with self.assertRaises(KeyError):
            testing.call("city", {"name": "rome"})

    def test_a_coroutine_is_awaited_and_a_context_is_given(self):
        @rlf.tool
        async def roll(sides: int, context: rlf.Context) -> int:
            return context.seed % sides

        self.assertEqual(testing.call("roll", {"sides": 6}, seed=8).text, "2")
        self.assertEqual(list(testing.schema("roll")["properties"]), ["sides"])

    def test_a_function_that_cannot_be_a_tool_says_why(self):
        def of(function):
            with self.assertRaises(rlf.InvalidPlugin) as refused:
                rlf.tool(function)
            return str(refused.exception)

        def stars(*names): ...
        def unknown(a: "Missing"): ...  # noqa: F821
        def file(path: pathlib.Path): ...
        @dataclasses.dataclass
        class Node:
            children: "list[Node]"

        Node.__annotations__["children"] = list[Node]
        def tree(node: Node): ...
        def told(a: int):
            """Text.

            Args:
                b: Not there.
            """

        self.assertIn("name every parameter", of(stars))
        self.assertIn("name 'Missing' is not defined", of(unknown))
        self.assertIn("parameter 'path'", of(file))
        def both(one: rlf.Context, other: rlf.Context | None = None): ...
        def steps():
            yield 1

        self.assertIn("return a list in place of `yield`", of(steps))
        self.assertIn("Node contains itself", of(tree))
        self.assertIn("'one' and 'other' are both the rlf.Context", of(both))
        self.assertIn("describes 'b', which is not a parameter", of(told))
        self.assertIn("write @rlf.tool(name='told')", of("told"))
        self.assertIn("is for functions", of(pathlib.Path))
        self.assertIn("has no object to be called on", of(pathlib.Path.exists))
        rlf.tool(name="one")(lambda: 1)
        with self.assertRaisesRegex(rlf.InvalidPlugin, "two tools named 'one'"):
            rlf.tool(name="one")(lambda: 2)


if __name__ == "__main__":
    unittest.main()
