"""Compares the model of a run in transformers with what the run recorded when it sampled.

    cargo xtask clients transformers

    python exported_models.py RLF_HOST PLUGINS
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

RLF_HOST, PLUGINS = sys.argv[1:]
ROOT = Path(__file__).parents[2]
# Small enough to end in seconds. The second step of RL samples with the weights after the first one.
SMALL = {
    "sft.steps": 20, "sft.batch_size": 8, "rl.steps": 2, "rl.prompts_per_step": 4, "rl.group_size": 4, "rl.refill": 0,
    "checkpoint.every": 1, "checkpoint.trajectories_every": 1,
    "eval.tasks": 2, "eval.samples": 1, "eval.validation_tasks": 2, "tasks.facts.generated": 300,
}


def rlf_host(*arguments):
    subprocess.run([RLF_HOST, *map(str, arguments)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def sequences(file):
    """The sampled sequences of a step: all ids, and the log-probability of each sampled one by its place."""
    for line in file.read_text().splitlines():
        for sequence in json.loads(line)["trajectory"]["sequences"]:
            ids, recorded = [], {}
            for segment in sequence:
                if sampled := segment.get("model", {}).get("sampled"):
                    recorded |= dict(enumerate(sampled["log_probs"], start=len(ids)))
                    ids += sampled["ids"]
                else:
                    ids += segment["prompt"] if "prompt" in segment else segment["observation"]
            yield torch.tensor([ids]), recorded


def largest_difference(folder, file):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    largest, count = 0.0, 0
    for ids, recorded in sequences(file):
        with torch.no_grad():
            log_probs = model(ids).logits[0].log_softmax(-1)
        for place, log_prob in recorded.items():
            largest = max(largest, abs(log_probs[place - 1, ids[0, place]].item() - log_prob))
            count += 1
    return largest, count


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    run, whole, half = folder / "run", folder / "f32", folder / "bf16"
    settings = [word for key, value in SMALL.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    rlf_host("train", "configs/quickstart.toml", "--plugins", PLUGINS, "--run", run, *settings)
    checkpoint, sampled = run / "checkpoints/rl-000001", run / "trajectories/rl-000002.jsonl"
    rlf_host("export", checkpoint, "--output", whole)
    rlf_host("export", checkpoint, "--output", half, "--dtype", "bf16")

    difference, count = largest_difference(whole, sampled)
    print(f"log-probabilities of {count} sampled tokens differ by at most {difference:.1e} nats in transformers")
    assert count > 100 and difference < 1e-4
    # Other weights are told apart.
    other, _ = largest_difference(half, sampled)
    print(f"with weights in bf16 they differ by up to {other:.1e}")
    assert other > 100 * difference

    exact, rounded = load_file(whole / "model.safetensors"), load_file(half / "model.safetensors")
    assert exact.keys() == rounded.keys()
    assert all(torch.equal(rounded[name], numbers.to(torch.bfloat16)) for name, numbers in exact.items())
    assert AutoModelForCausalLM.from_pretrained(half).dtype == torch.bfloat16
    print("the model in bf16 has the rounded weights, and says so")
