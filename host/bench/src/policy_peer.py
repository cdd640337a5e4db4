"""Trains and decodes a model of a given shape in transformers, and prints tokens per second.

    python policy_peer.py WORKLOAD

WORKLOAD is a JSON object: see `Workload` in policy.rs. The answer is a JSON object: for every number format, the figures
in the order of the benchmark, training first. A figure is the tokens per second and the way in which they were reached.
"""

import inspect
import json
import os
import sys
import time

# Only the answer goes to standard output: libraries print there too.
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch
import transformers

workload = json.loads(sys.argv[1])
device = workload["device"]
# Releases of transformers differ in the name of the cache of keys and values.
parameters = inspect.signature(transformers.Qwen3ForCausalLM.forward).parameters
CACHE = "cache" if "cache" in parameters else "past_key_values"


def prepare_cpu():
    """Takes the same number of threads, and says which instructions are used."""
    torch.set_num_threads(workload["workers"])
    instructions = torch.backends.cpu.get_cpu_capability()
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{versions}, {torch.get_num_threads()} threads, {instructions}", flush=True)
    if torch.backends.mkl.is_available():
        # MKL chooses its kernels itself, and names them at the first product.
        with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
            torch.mm(torch.ones(64, 64), torch.ones(64, 64))


def seconds(work):
    """The seconds of the fastest call until the time is over."""

    def timed():
        before = time.monotonic()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        return time.monotonic() - before

    timed()
    best, end = float("inf"), time.monotonic() + workload["seconds"]
    while True:
        best = min(best, timed())
        if time.monotonic() > end:
            return best


def tokens(rows, length):
    # 0 and 1 are the padding and the end.
    return torch.randint(2, workload["config"]["vocab_size"], (rows, length), device=device)


def training(model):
    rows, length = workload["sequences"], workload["length"]
    texts = tokens(rows, length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    at_once = max(1, workload["micro_batch_tokens"] // length)
    targets = rows * (length - 1)

    def step():
        for batch in texts.split(at_once):
            logits = model(batch, use_cache=False).logits[:, :-1].float()
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), batch[:, 1:].flatten(), reduction="sum"
            )
            (loss / targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    model.train()
    if workload["checkpointing"]:
        model.gradient_checkpointing_enable()
    return rows * length / seconds(step), "eager"


def draw_in_loop(model, prompts, new):
    """Decodes without `generate`, which does much more for each token than the model."""
    with torch.inference_mode():
        cache, last = None, prompts
        for _ in range(new):
            output = model(last, use_cache=True, logits_to_keep=1, **{CACHE: cache})
            cache = getattr(output, CACHE)
            last = torch.multinomial(output.logits[:, -1].float().softmax(-1), 1)


def decoding(model, batch):
    new = workload["new_tokens"]
    prompts = tokens(batch, workload["prompt"])
    config = transformers.GenerationConfig(
        do_sample=True, top_k=0, min_new_tokens=new, max_new_tokens=new, pad_token_id=0, eos_token_id=1
    )
    model.eval()
    model.gradient_checkpointing_disable()
    ways = {
        "generate": lambda: model.generate(prompts, generation_config=config),
        "a loop": lambda: draw_in_loop(model, prompts, new),
    }
    return max((batch * new / seconds(work), way) for way, work in ways.items())


if device == "cpu":
    prepare_cpu()
figures = {}
for name in workload["formats"]:
    torch.manual_seed(0)
    config = transformers.Qwen3Config(**workload["config"])
    model = transformers.Qwen3ForCausalLM(config).to(device, getattr(torch, name))
    figures[name] = [training(model)]
    figures[name] += [decoding(model, batch) for batch in workload["decode_batches"]]
    del model
print(json.dumps(figures), file=answer, flush=True)
