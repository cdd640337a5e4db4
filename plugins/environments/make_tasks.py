"""Writes training tasks in the environments of this folder, as JSON lines in the project's row format.

    python3 make_tasks.py [--seed N] [--train N] [--validation N] [--test N] [--out FOLDER]

The same seed gives the same bytes. Every question is drawn from a template and its gold calls are played; a task is
kept if all of them succeed and if each of its environments ends in another state than it began in: whoever does nothing
has done nothing of it.
"""

import argparse
import json
import pathlib

import draws
import long_tasks
import play
import short_tasks

SEED = 20
COUNTS = {"train": 70, "validation": 18, "test": 18}
SOURCE = "environments"
MOST_CALLS = 4
# One task in this many uses two environments.
PAIRED = 5
LINKS = ["Also: ", "Then one more thing. ", "And after that: ", "Another matter: "]


def draw_parts(draw):
    """One environment's part, or two parts about the same person."""
    person = draw.choice(draws.PEOPLE)
    if draw.randrange(PAIRED):
        of = short_tasks if draw.random() < 0.6 else long_tasks
        return [draw.choice(of.TEMPLATES)(draw, person)]
    while True:
        first, second = (template(draw, person) for template in draw.two(short_tasks.TEMPLATES))
        if first.name != second.name and len(first.calls) + len(second.calls) <= MOST_CALLS:
            return [first, second]


def played(parts):
    """The states before and after the gold calls; none if they are not good enough to teach."""
    episode = play.Episode({part.name: part.scenario for part in parts}, seed=0)
    initial = episode.state()
    for part in parts:
        for tool, arguments in part.calls:
            try:
                episode.call(f"{part.name}-{tool}", arguments)
            except play.Refused:
                return None
    state = episode.state()
    if any(state[part.name] == initial[part.name] for part in parts):
        return None
    return initial, state


def task_of(identifier, draw, parts):
    """The row, or none if the parts do not play."""
    states = played(parts)
    if states is None:
        return None
    initial, state = states
    texts = [parts[0].text, *(draw.choice(LINKS) + part.text for part in parts[1:])]
    calls = [
        {"name": f"{part.name}-{tool}", "arguments": arguments, "masked": []}
        for part in parts
        for tool, arguments in part.calls
    ]
    kind = "+".join(sorted(part.name for part in parts))
    return {
        "id": identifier,
        "source": SOURCE,
        "prompt": [{"role": "user", "content": " ".join(texts)}],
        "reference": {"calls": calls, "state": state, "initial": initial},
        "environment": "servers",
        "setup": {"servers": {part.name: part.scenario for part in parts}},
        "extra": {"kind": f"{kind}-{len(calls)}"},
    }


def make(seed, counts):
    """Rows by split; no question in the same state is in two rows."""
    draw, seen, rows = draws.Draw(seed), set(), {}
    for split, count in counts.items():
        rows[split] = []
        while len(rows[split]) < count:
            task = task_of(f"{split}-{len(rows[split])}", draw, draw_parts(draw))
            if task is None:
                continue
            key = json.dumps([task["prompt"], task["setup"]], sort_keys=True)
            if key not in seen:
                seen.add(key)
                rows[split].append(task)
    return rows


def text_of(rows):
    """JSON lines, without spaces that nobody reads."""
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def main():
    parser = argparse.ArgumentParser(description="Writes training tasks in the environments of this folder.")
    parser.add_argument("--seed", type=int, default=SEED, help=f"decides every draw (default {SEED})")
    for split, count in COUNTS.items():
        parser.add_argument(f"--{split}", type=int, default=count, help=f"rows of {split}.jsonl (default {count})")
    parser.add_argument("--out", type=pathlib.Path, default=play.FOLDER / "tasks", help="folder (default: tasks, here)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for split, rows in make(given.seed, {split: getattr(given, split) for split in COUNTS}).items():
        (given.out / f"{split}.jsonl").write_text(text_of(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
