"""Compares LoRA adapters with PEFT's: those of a run in PEFT, and PEFT's in a run.

    cargo xtask clients peft

    python peft_adapters.py RLF_HOST PLUGINS

The model has random weights and hardly any training, so this shows that adapters mean the same in both programs, and not
that anything is learned.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

RLF_HOST, PLUGINS = sys.argv[1:]
ROOT = Path(__file__).parents[2]
IDS = torch.arange(3, 40).unsqueeze(0)
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Small enough to end in seconds.
SMALL = {
    "sft.steps": 2, "sft.batch_size": 4, "rl.steps": 1, "rl.prompts_per_step": 2, "rl.group_size": 2, "eval.tasks": 2,
    "eval.samples": 1, "eval.validation_tasks": 2, "tasks.facts.generated": 300,
}


def rlf_host(*arguments):
    subprocess.run([RLF_HOST, *map(str, arguments)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def train(run, settings):
    pairs = [f"{key}={json.dumps(value)}" for key, value in {**SMALL, **settings}.items()]
    further = [word for pair in pairs for word in ("--set", pair)]
    rlf_host("train", "configs/quickstart.toml", "--plugins", PLUGINS, "--run", run, *further)


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def logits(model):
    with torch.no_grad():
        return model.eval()(IDS).logits


def compare(case, ours, theirs, base):
    error, change = (ours - theirs).abs().max().item(), (theirs - base).abs().max().item()
    print(f"{case}: largest difference of a logit {error:.2e}; the adapter changes logits by up to {change:.2e}")
    assert error < 1e-4 and change > 100 * error, case


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)

    run = folder / "ours"
    train(run, {"model.lora.rank": 4, "model.lora.alpha": 6.0, "sft.optimizer.learning_rate": 0.05})
    base = logits(load(run / "base"))
    checkpoint = run / "checkpoints/latest"
    rlf_host("export", run, "--output", folder / "merged")
    theirs = logits(PeftModel.from_pretrained(load(run / "base"), checkpoint))
    compare("an adapter of a run in PEFT", logits(load(folder / "merged")), theirs, base)

    torch.manual_seed(0)
    # Without its usual beginning, B is random too.
    settings = LoraConfig(r=4, lora_alpha=6, target_modules=TARGETS, init_lora_weights=False, task_type="CAUSAL_LM")
    model = get_peft_model(load(run / "base"), settings)
    model.save_pretrained(folder / "adapter")
    # At this learning rate no number changes.
    still = {"sft.optimizer.learning_rate": 1e-30, "rl.optimizer.learning_rate": 1e-30}
    adapter = {"model.lora.rank": 4, "model.lora.alpha": 6.0, "model.lora.adapter": str(folder / "adapter")}
    train(folder / "theirs", {**still, **adapter})
    rlf_host("export", folder / "theirs", "--output", folder / "merged-theirs")
    compare("an adapter of PEFT in a run", logits(load(folder / "merged-theirs")), logits(model), base)
