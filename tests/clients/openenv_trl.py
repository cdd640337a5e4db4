"""TRL trains in an environment that `rlf-host serve` serves, as it does in those of OpenEnv's servers.

    python openenv_trl.py http://127.0.0.1:8080/openenv/counter

The environment is the counter of openenv_clients.py.
"""

import sys
import tempfile

from datasets import Dataset
from openenv.core.generic_client import GenericEnvClient
from small_model import small_model
from trl import GRPOConfig, GRPOTrainer


class Counter:
    """A session on the server. TRL makes one for each rollout of a batch, and offers its other methods as tools."""

    def __init__(self):
        self._client = GenericEnvClient(base_url=sys.argv[1]).sync()

    def reset(self, start, goal, **row):
        self._client.reset(servers={"Counter": {"count": start}}, reference={"state": {"Counter": {"count": goal}}})

    def add(self, by: int) -> str:
        """Adds to the count, and returns it.

        Args:
            by: The number to add.
        """
        call = {"type": "call_tool", "tool_name": "Counter-add", "arguments": {"by": by}}
        seen = self._client.step(call).observation
        return str(seen.get("result") or seen.get("error"))

    def get_reward(self) -> float:
        return self._client.step({"type": "answer", "answer": None}).reward


def main():
    # What the trainer calls, first by hand.
    counter = Counter()
    counter.reset(start=40, goal=42)
    untouched = counter.get_reward()
    counter.reset(start=40, goal=42)
    assert "42" in counter.add(by=2)
    assert (untouched < 1.0, counter.get_reward()) == (True, 1.0), untouched

    model, tokenizer = small_model()
    row = {"prompt": [{"role": "user", "content": "Count from 40 to 42."}], "start": 40, "goal": 42}
    with tempfile.TemporaryDirectory() as output:
        settings = GRPOConfig(
            output_dir=output, max_steps=1, per_device_train_batch_size=4, num_generations=4, max_completion_length=8,
            report_to=[], use_cpu=True, logging_steps=1, save_strategy="no",
        )
        trainer = GRPOTrainer(
            model=model, processing_class=tokenizer, args=settings, train_dataset=Dataset.from_list([row] * 4),
            environment_factory=Counter,
        )
        trainer.train()
    # A model with random weights makes no call.
    logged = trainer.state.log_history[0]
    assert logged["rewards/Counter/mean"] == untouched, logged


main()
