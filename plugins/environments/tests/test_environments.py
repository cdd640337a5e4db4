"""What the environments, scenarios and tasks of this folder promise, natively."""

import ast
import copy
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import make_tasks
import play
import record

# Environments that fit in the context of a tiny model, and the maximum characters of their tools.
SHORT, MOST_CHARACTERS = ("Bakery", "Ferry", "Gym", "Library", "ToolShed"), 2400
# No clock, and no randomness except the seeded one.
IMPORTS = {"mcp.server.fastmcp", "pydantic", "random", "typing"}
WRONG = ("no such", -7, 10**9, None)
# A type that no state contains.
NO_STATE = [[[0]]]


def setUpModule():
    try:
        play.load_module(play.names()[0])
    except ModuleNotFoundError as missing:
        reason = f"SKIPPED: {missing}; `pip install pydantic`, and 'mcp<2' where ../python/packages is not there"
        print(reason, file=sys.stderr)
        raise unittest.SkipTest(reason) from missing


def scenarios():
    return json.loads(record.SCENARIOS.read_text(encoding="utf-8"))


def tasks(split):
    text = (play.FOLDER / "tasks" / f"{split}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def takes(schema, value):
    """Whether a JSON schema, as far as tools use them, takes a value."""
    if "anyOf" in schema:
        return any(takes(option, value) for option in schema["anyOf"])
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return (
            isinstance(value, dict)
            and all(key in value for key in schema.get("required", []))
            and all(key in properties and takes(properties[key], entry) for key, entry in value.items())
        )
    python = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}[kind]
    return isinstance(value, python) and (kind == "boolean" or not isinstance(value, bool))


class Files(unittest.TestCase):
    def test_there_are_at_least_ten(self):
        self.assertGreaterEqual(len(play.names()), 10)

    def test_every_file_has_the_format(self):
        for name in play.names():
            with self.subTest(name):
                module = play.load_module(name)
                self.assertEqual(module.mcp.name, name)
                self.assertIsInstance(module.api, getattr(module, name))
                self.assertEqual(module.Scenario_Schema[-1].__name__, f"{name}Scenario")
                self.assertGreaterEqual(len(module.Scenario_Schema), 2)
                last = ast.parse((play.FOLDER / f"{name}.py").read_text(encoding="utf-8")).body[-1]
                self.assertEqual(ast.unparse(last), "if __name__ == '__main__':\n    mcp.run()")

    def test_every_environment_has_five_to_ten_described_tools_beside_the_two_for_its_state(self):
        for name in play.names():
            with self.subTest(name):
                module = play.load_module(name)
                self.assertLessEqual(set(play.STATE_TOOLS), set(play.registered(module)))
                tools = play.tools_of(module)
                self.assertIn(len(tools), range(5, 11))
                for tool, (description, schema) in tools.items():
                    self.assertTrue(description.strip(), tool)
                    self.assertTrue(callable(getattr(module.api, tool)), tool)
                    self.assertEqual(schema["type"], "object", tool)

    def test_no_environment_can_see_a_clock_or_entropy(self):
        for name in play.names():
            tree = ast.parse((play.FOLDER / f"{name}.py").read_text(encoding="utf-8"))
            used = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
            used |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            self.assertLessEqual(used, IMPORTS, name)

    def test_short_environments_fit_into_a_small_context(self):
        for name in SHORT:
            shown = [
                {"name": f"{name}-{tool}", "description": description, "parameters": schema}
                for tool, (description, schema) in play.tools_of(play.load_module(name)).items()
            ]
            self.assertLessEqual(len(json.dumps(shown)), MOST_CHARACTERS, name)


class Scenarios(unittest.TestCase):
    def test_every_scenario_reaches_what_is_expected(self):
        for scenario in scenarios():
            with self.subTest(scenario["id"]):
                self.assertEqual(record.reached(scenario)[0], scenario["expect"])

    def test_only_scenarios_that_say_so_have_refused_calls(self):
        for scenario in scenarios():
            with self.subTest(scenario["id"]):
                refusals = record.reached(scenario)[1]
                self.assertEqual(bool(refusals), scenario["id"].endswith("-refused"), refusals)

    def test_every_environment_has_three_scenarios_and_one_of_refusals(self):
        found = [(list(s["task"]["servers"]), s["id"]) for s in scenarios()]
        for name in play.names():
            mine = [identifier for servers, identifier in found if servers == [name]]
            self.assertGreaterEqual(len(mine), 3, name)
            self.assertTrue(any(identifier.endswith("-refused") for identifier in mine), name)
        self.assertGreaterEqual(sum(len(servers) > 1 for servers, _ in found), 2)
        self.assertEqual(len({identifier for _, identifier in found}), len(found))

    def test_every_tool_is_called_by_a_scenario(self):
        called = {tool for scenario in scenarios() for tool, _ in scenario["calls"]}
        for name in play.names():
            for tool in play.tools_of(play.load_module(name)):
                self.assertIn(f"{name}-{tool}", called)

    def test_the_file_is_as_the_recorder_writes_it(self):
        self.assertEqual(record.text_of(scenarios()), record.SCENARIOS.read_text(encoding="utf-8"))

    def test_the_seed_decides_what_is_drawn(self):
        for identifier in ("parceldepot-store", "chessclub-draw-evening"):
            scenario = next(s for s in scenarios() if s["id"] == identifier)
            states = [record.reached({**scenario, "seed": seed})[0] for seed in (1, 1, 2)]
            self.assertEqual(states[0], states[1], identifier)
            self.assertNotEqual(states[0], states[2], identifier)


class States(unittest.TestCase):
    def test_loading_what_was_saved_changes_nothing(self):
        for scenario in scenarios():
            for name, state in scenario["expect"].items():
                with self.subTest(scenario["id"], name=name):
                    module = play.load_module(name)
                    module.load_scenario(state)
                    self.assertEqual(json.dumps(module.save_scenario()), json.dumps(state))

    def test_a_saved_state_is_a_copy(self):
        for scenario in scenarios():
            given = copy.deepcopy(scenario["task"]["servers"])
            episode = play.Episode(given, scenario["seed"])
            saved = {name: module.save_scenario() for name, module in episode.modules.items()}
            before = copy.deepcopy(saved)
            for tool, arguments in scenario["calls"]:
                try:
                    episode.call(tool, arguments)
                except play.Refused:
                    pass
            self.assertEqual(saved, before, scenario["id"])
            self.assertEqual(given, scenario["task"]["servers"], scenario["id"])

    def test_a_state_that_does_not_load_leaves_the_old_one(self):
        for scenario in scenarios():
            for name, state in scenario["expect"].items():
                module = play.load_module(name)
                module.load_scenario(state)
                for field in state:
                    with self.assertRaises(Exception):
                        module.load_scenario({**state, field: NO_STATE})
                self.assertEqual(module.save_scenario(), state, scenario["id"])

    def test_a_refused_call_changes_and_draws_nothing(self):
        refused = 0
        for scenario in scenarios():
            episode = play.Episode(scenario["task"]["servers"], scenario["seed"])
            for tool, arguments in scenario["calls"]:
                for wrong in self.spoiled(arguments):
                    before, drawn = episode.state(), random.getstate()
                    if self.refused_without_a_trace(episode, tool, wrong):
                        refused += 1
                        continue
                    # Successful calls are undone, so that the scenario continues as planned.
                    random.setstate(drawn)
                    for name, state in before.items():
                        episode.modules[name].load_scenario(state)
                refused += self.refused_without_a_trace(episode, tool, arguments)
            self.assertEqual(episode.state(), scenario["expect"], scenario["id"])
        self.assertGreater(refused, 900)

    def spoiled(self, arguments):
        for key in arguments:
            yield {k: v for k, v in arguments.items() if k != key}
            yield from ({**arguments, key: value} for value in WRONG)

    def refused_without_a_trace(self, episode, tool, arguments):
        before, drawn = episode.state(), random.getstate()
        try:
            episode.call(tool, arguments)
        except play.Refused:
            self.assertEqual(episode.state(), before, (tool, arguments))
            self.assertEqual(random.getstate(), drawn, (tool, arguments))
            return True
        return False


class Tasks(unittest.TestCase):
    def test_the_checked_in_files_are_what_the_generator_writes(self):
        for split, rows in make_tasks.make(make_tasks.SEED, make_tasks.COUNTS).items():
            written = (play.FOLDER / "tasks" / f"{split}.jsonl").read_text(encoding="utf-8")
            self.assertTrue(make_tasks.text_of(rows) == written, f"{split}.jsonl differs; run make_tasks.py")

    def test_the_seed_decides_the_tasks(self):
        first, again, other = (make_tasks.make(seed, {"train": 6}) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_any_seed_gives_tasks(self):
        for seed in range(40):
            self.assertEqual(len(make_tasks.make(seed, {"train": 8})["train"]), 8)

    def test_gold_calls_are_taken_by_the_tools_schemas(self):
        schemas = {
            f"{name}-{tool}": schema
            for name in play.names()
            for tool, (_, schema) in play.tools_of(play.load_module(name)).items()
        }
        for split in make_tasks.COUNTS:
            for task in tasks(split):
                for call in task["reference"]["calls"]:
                    self.assertTrue(takes(schemas[call["name"]], call["arguments"]), (task["id"], call))

    def test_gold_calls_lead_from_the_setup_to_the_gold_state(self):
        for split in make_tasks.COUNTS:
            for task in tasks(split):
                # A different seed: no task may depend on it.
                episode = play.Episode(task["setup"]["servers"], seed=len(task["id"]) + 99)
                self.assertEqual(episode.state(), task["reference"]["initial"], task["id"])
                for call in task["reference"]["calls"]:
                    episode.call(call["name"], call["arguments"])
                self.assertEqual(episode.state(), task["reference"]["state"], task["id"])

    def test_whoever_does_nothing_has_done_nothing_of_any_task(self):
        for split in make_tasks.COUNTS:
            for task in tasks(split):
                wanted, there = task["reference"]["state"], play.Episode(task["setup"]["servers"], seed=0).state()
                self.assertEqual(set(wanted), set(there), task["id"])
                # The verdict is the share of servers whose state is correct.
                self.assertEqual([name for name in wanted if wanted[name] == there[name]], [], task["id"])

    def test_no_question_in_the_same_world_is_in_two_splits(self):
        rows = [json.dumps([t["prompt"], t["setup"]], sort_keys=True) for s in make_tasks.COUNTS for t in tasks(s)]
        self.assertEqual(len(set(rows)), len(rows))

    def test_tasks_have_one_to_four_calls_in_one_or_two_environments_and_all_environments_have_some(self):
        met = set()
        for split in make_tasks.COUNTS:
            for task in tasks(split):
                calls, servers = task["reference"]["calls"], task["setup"]["servers"]
                self.assertIn(len(calls), range(1, make_tasks.MOST_CALLS + 1), task["id"])
                self.assertIn(len(servers), (1, 2), task["id"])
                self.assertEqual({call["name"].partition("-")[0] for call in calls}, set(servers), task["id"])
                self.assertEqual(task["extra"]["kind"], f"{'+'.join(sorted(servers))}-{len(calls)}")
                met.update(servers)
        self.assertEqual(met, set(play.names()))

    def test_the_checked_in_files_are_small(self):
        size = sum((play.FOLDER / "tasks" / f"{split}.jsonl").stat().st_size for split in make_tasks.COUNTS)
        self.assertLessEqual(size, 150_000)


if __name__ == "__main__":
    unittest.main()
