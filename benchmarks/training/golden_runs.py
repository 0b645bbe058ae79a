"""Golden runs on a CPU: the same short runs before and after a change must be equal bit for bit.

    foresail quickstart --run golden/base                        # once: a tokenizer, data and a cold start
    python benchmarks/training/golden_runs.py golden/base before.json    # with the tree before the change
    python benchmarks/training/golden_runs.py golden/base after.json --before before.json

Only the command line is used, so the script runs with any tree: PYTHONPATH says which. Compared are the metrics
without times, every sample of every step, and the weights; one machine, one version of torch on both sides.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

SFT_STEPS, RL_STEPS = 50, 20
CRITIC = ("advantage.kind=gae", "dynamic_sampling.enabled=false", "critic.warmup_steps=1")
RUNS: dict[str, tuple[str, ...]] = {
    "sft": ("sft", f"steps={SFT_STEPS}"),
    "sft_lora": ("sft", "steps=10", "lora.rank=4"),
    "sft_8bit": ("sft", "steps=10", "model.dtype=bfloat16", "optimizer.states=8bit", "recompute=true"),
    "rl": ("rl", f"steps={RL_STEPS}", "eval_every=10"),
    "rl_critic": ("rl", "steps=4", *CRITIC, "critic.kind=model"),
    "rl_head": ("rl", "steps=4", *CRITIC, "critic.kind=head"),
    "rl_kl": ("rl", "steps=4", "loss.kl_weight=0.01", "loss.old_logprobs=trainer", "updates_per_step=2"),
    "rl_lora": ("rl", "steps=4", "lora.rank=4", "loss.kl_weight=0.01", "optimizer.lr=1e-3"),
    "rl_workers": ("rl", "steps=4", "run.deterministic=true", "rollout.workers=2"),
    "rl_chunks": ("rl", "steps=4", "run.deterministic=true", "rollout.chunk_tokens=8", "rollout.drafts=on",
                  "engine.kv_tokens=2048"),
    "rl_ahead": ("rl", "steps=4", "run.deterministic=true", "rollout.workers=1", "rollout.staleness=1",
                 "loss.old_logprobs=trainer", "loss.importance_cap=2"),
    "rl_pool": ("rl", "steps=6", "dynamic_sampling.easy_pool=0.2", "dynamic_sampling.window=[0.1,0.9]"),
    "rl_float16": ("rl", "steps=3", "model.dtype=float16", "loss.kind=gspo",
                   "loss.aggregation=seq-mean-token-mean"),
}  # fmt: skip
TIMES = (  # and what follows from them: drafts are tried while they pay
    "timing_s/",
    "perf/",
    "rollout/tokens_per_second",
    "rollout/groups_surplus",
    "rollout/groups_cancelled",
    "rollout/drafted_steps",
    "rollout/tokens_per_drafted_step",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", type=Path, help="folder of a finished quickstart")
    parser.add_argument("figures", type=Path, help="file for what was found")
    parser.add_argument("--before", type=Path, help="what the tree before the change had")
    parser.add_argument("--runs", nargs="*", default=[*RUNS], choices=[*RUNS])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        described = {name: make_run(name, options.base, Path(folder)) for name in options.runs}
    options.figures.write_text(json.dumps(described, indent=1) + "\n")
    before = json.loads(options.before.read_text()) if options.before else {}
    changed = {name: differences(before[name], described[name]) for name in described if name in before}
    changed = {name: lines for name, lines in changed.items() if lines}
    print(
        json.dumps(
            {"runs": len(described), "compared": len(before.keys() & described.keys()), "changed": changed}
        )
    )
    sys.exit(bool(changed))


def make_run(name: str, base: Path, root: Path) -> dict[str, str]:
    stage, *overrides = RUNS[name]
    recipe = base / stage / "recipe.toml"
    places = [f"run.root={root}", f"run.name={name}", "run.device=cpu", "show_samples=0"]
    words = [stage, str(recipe), *overrides, *places[: 3 if stage == "sft" else 4]]
    command = [sys.executable, "-c", "from foresail.cli import main; main()", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    print(f"{name}: done", file=sys.stderr, flush=True)
    return describe_run(root / name)


def describe_run(run: Path) -> dict[str, str]:
    """Checksums by step and file: the first that differs says where to look."""
    digests = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = {key: value for key, value in json.loads(line).items() if not key.startswith(TIMES)}
        row.pop("time", None)
        for key, value in row.items():
            digests[f"step {row['step']} {key}"] = repr(value)
    for file in sorted((run / "rollouts").glob("*")) if (run / "rollouts").exists() else []:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        digests[f"rollouts {file.name}"] = f"{zlib.crc32(content):08x}"
    newest = max((run / "checkpoints").glob("step_*"), key=lambda path: int(path.name.split("_")[1]))
    for file in sorted(newest.rglob("*.safetensors")):
        digests |= {f"{file.relative_to(newest)} {name}": value for name, value in checksums(file).items()}
    return digests


def checksums(file: Path) -> dict[str, str]:
    """By tensor: the file as a whole also has metadata, whose order is left to chance."""
    content = file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    places = {name: [start + offset for offset in entry["data_offsets"]] for name, entry in header.items()}
    return {name: f"{zlib.crc32(content[first:past]):08x}" for name, (first, past) in sorted(places.items())}


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    names = [*before, *(name for name in after if name not in before)]
    return [f"{name}: {before.get(name)} -> {after.get(name)}" for name in names
            if before.get(name) != after.get(name)][:10]  # fmt: skip


if __name__ == "__main__":
    main()
