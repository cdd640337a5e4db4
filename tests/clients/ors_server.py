"""An environment written with a published package of the Open Reward Standard: `ors_server.py PACKAGE PORT LOG`.

The packages are `openreward` and `ors` (from ors-sdk). LOG gets a line for each session that begins or ends.
"""

import importlib
import sys

from pydantic import BaseModel

PACKAGE, PORT, LOG = sys.argv[1:]
# In openreward they are in a module of their own.
ors = importlib.import_module("openreward.environments" if PACKAGE == "openreward" else PACKAGE)


class By(BaseModel):
    by: int


class Counting(ors.Environment):
    """A counter. The task says where to."""

    def note(self, what):
        with open(LOG, "a") as log:
            log.write(f"{what}\n")

    def setup(self):
        self.count = 0
        self.note("begins")

    def teardown(self):
        self.note("ends")

    def get_prompt(self):
        return [ors.TextBlock(text=f"Count to {self.task_spec['goal']}.")]

    @classmethod
    def list_splits(cls):
        return [ors.Split(name="train", type="train"), ors.Split(name="test", type="test")]

    @classmethod
    def list_tasks(cls, split):
        return [{"goal": goal} for goal in range(20)]

    @ors.tool
    def add(self, arguments: By) -> ors.ToolOutput:
        """Adds to the count."""
        if arguments.by < 0:
            raise ValueError("there are no numbers below 0")
        self.count += arguments.by
        right = self.count == self.task_spec["goal"]
        blocks = [ors.TextBlock(text=str(self.count))]
        if self.count % 5 == 0:
            # The answer is longer than a piece of the stream, which has 4,096 characters.
            blocks.append(ors.ImageBlock(data="A" * 5_000, mimeType="image/png"))
        return ors.ToolOutput(blocks=blocks, reward=float(right), finished=True)


if __name__ == "__main__":
    ors.Server([Counting]).run("127.0.0.1", int(PORT))
