"""Our pydantic does what the real one does: by what was recorded of it, and beside it where it is installed.

Set `REAL_PYTHON` to a Python that has the real package, as `record.py` says how to make one.
"""

import json
import os
import pathlib
import pickle
import subprocess
import sys
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import observe  # noqa: E402
import pydantic  # noqa: E402
import record  # noqa: E402

sys.path[:0] = [str(HERE.parent)]

# In some cases the reason why a text is not a duration or moment differs, and a few texts are durations only here.
WORDED_DIFFERENTLY = {"Span", "Moment"}
SIDE_BY_SIDE = "import json,sys;sys.path.append(sys.argv[1]);import observe,pydantic_core;json.dump(observe.everything(),sys.stdout)"


def model_of(place):
    return place.split()[0]


class Recorded(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.expected = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
        cls.ours = observe.everything()

    def test_the_release_is_the_recorded_one(self):
        self.assertEqual(pydantic.VERSION, self.expected["pydantic"])
        self.assertNotIn("pydantic_core", sys.modules)

    def test_json_schemas_are_pydantics(self):
        self.assertEqual(self.ours["schemas"], self.expected["schemas"])

    def test_values_dumps_and_error_texts_are_pydantics(self):
        compared = 0
        ours = self.ours["inputs"][:: record.EVERY]
        self.assertEqual([place for place, _ in ours], [place for place, _ in self.expected["inputs"]])
        for (place, seen), (_, expected) in zip(ours, self.expected["inputs"]):
            if model_of(place) in WORDED_DIFFERENTLY:
                continue
            for key, text in expected.items():
                with self.subTest(place=place, seen=key):
                    self.assertEqual(seen.get(key), text)
                    compared += 1
        self.assertGreater(compared, 1000)

    def test_all_of_it_is_what_the_real_package_beside_us_does(self):
        real = os.environ.get("REAL_PYTHON")
        if not real:
            print("\nSKIPPED: the comparison beside the real pydantic; set REAL_PYTHON to a Python that has it", file=sys.stderr)
            self.skipTest("REAL_PYTHON is not set")
        done = subprocess.run(
            [real, "-W", "ignore", "-c", SIDE_BY_SIDE, str(HERE)], stdout=subprocess.PIPE, check=True, cwd="/",
            env={"PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        expected = json.loads(done.stdout)
        self.assertEqual(self.ours["schemas"], expected["schemas"])
        for (place, seen), (other, wanted) in zip(self.ours["inputs"], expected["inputs"], strict=True):
            self.assertEqual(place, other)
            if model_of(place) not in WORDED_DIFFERENTLY:
                with self.subTest(place=place):
                    self.assertEqual(seen, wanted)


class Behaviour(unittest.TestCase):
    def test_a_forward_reference_is_resolved_when_it_is_needed(self):
        class Early(pydantic.BaseModel):
            later: "list[Later]" = []

        class Later(pydantic.BaseModel):
            x: int

        Early.model_rebuild(_types_namespace={"Later": Later})
        self.assertEqual(Early(later=[{"x": "4"}]).later[0].x, 4)

    def test_what_is_not_defined_is_told_with_its_name(self):
        class Lost(pydantic.BaseModel):
            x: "Nowhere"  # noqa: F821

        with self.assertRaisesRegex(pydantic.PydanticUserError, "`Lost` is not fully defined; you should define `Nowhere`"):
            Lost(x=1)

    def test_defaults_are_not_shared_between_instances(self):
        class Listed(pydantic.BaseModel):
            items: list = []

        Listed().items.append(1)
        self.assertEqual(Listed().items, [])

    def test_an_instance_survives_pickling(self):
        import models

        made = models.Outer(value={"x": 1}, more=[{"x": 2}])
        self.assertEqual(pickle.loads(pickle.dumps(made)), made)

    def test_a_union_takes_the_member_that_fits_best(self):
        either = pydantic.TypeAdapter(int | str)
        self.assertEqual([either.validate_python(value) for value in ("1", 1, 1.0)], ["1", 1, 1])

    def test_an_unknown_class_is_refused_when_the_model_is_made(self):
        with self.assertRaises(pydantic.PydanticSchemaGenerationError):
            type("Bad", (pydantic.BaseModel,), {"__annotations__": {"x": type("Odd", (), {})}, "__module__": __name__})


warnings.simplefilter("ignore")

if __name__ == "__main__":
    unittest.main()
