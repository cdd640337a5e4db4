"""Plays every scenario of scenarios.json and writes the states it reaches as what is expected.

    python3 record.py

What changed is printed, for a person to read: a state is expected because somebody found it right, not because it came
out.
"""

import json

import play

SCENARIOS = play.FOLDER / "scenarios.json"


def reached(scenario):
    """The states after the scenario's calls, and what the refused ones said."""
    episode = play.Episode(scenario["task"]["servers"], scenario["seed"])
    refusals = []
    for tool, arguments in scenario["calls"]:
        try:
            episode.call(tool, arguments)
        except play.Refused as refusal:
            refusals.append(f"{tool}: {refusal}")
    return episode.state(), refusals


def text_of(scenarios):
    """One key a line, so that a change of one expectation is a change of one line."""
    rows = []
    for scenario in scenarios:
        keys = [f'    "{key}": {json.dumps(scenario[key])}' for key in ("id", "task", "seed")]
        calls = ",\n".join(f"      {json.dumps(call)}" for call in scenario["calls"])
        keys.append(f'    "calls": [\n{calls}\n    ]')
        keys.append(f'    "expect": {json.dumps(scenario["expect"])}')
        rows.append("  {\n" + ",\n".join(keys) + "\n  }")
    return "[\n" + ",\n".join(rows) + "\n]\n"


def main():
    scenarios = json.loads(SCENARIOS.read_text(encoding="utf-8"))
    for scenario in scenarios:
        expect, refusals = reached(scenario)
        if expect != scenario.get("expect"):
            print(f"{scenario['id']}\n  {json.dumps(expect)}")
            for refusal in refusals:
                print(f"  refused {refusal}")
        scenario["expect"] = expect
    SCENARIOS.write_text(text_of(scenarios), encoding="utf-8")


if __name__ == "__main__":
    main()
