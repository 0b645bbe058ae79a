"""One full step of reinforcement learning at a real shape on one GPU: rollout, grading, updates; time and memory.

Random weights, real GSM8K questions, every response to the full length. The grader is the maths verifier; since
random text is never right, half of each group gets a reward of one, so that every token has a gradient. The engine
reads the trainer's own weights, AdamW has its 8-bit states, and the cache lends its memory to the updates. Model
FLOPs as in `train_gpu.py`. The tokens a second of the rollout count responses only.

    python benchmarks/training/rl_step_gpu.py --shape 7B --problems 128 --samples 8 --tokens 1024 --updates 4
The last line is JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
from shapes import SHAPES
from tokenizers import Tokenizer
from train_gpu import PEAK, PROMPT, random_model

from foresail.data.problems.prompts import PromptedProblem
from foresail.model.decoder import Decoder
from foresail.recipe.stages.rl import Rl
from foresail.records import Group, Message, Problem, Sample, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.grading import Grading
from foresail.rewards.group_rewards import Rewards
from foresail.rollout.build import build_fleet
from foresail.rollout.collect import collect, gradable
from foresail.rollout.controller import Controller
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.train.learner import Learner
from foresail.train.optim.optimizer import AnyOptimizer, build_optimizer
from foresail.train.policy.loss import PolicyTerms, batch_loss
from foresail.train.policy.turn_credit import uniform_advantages
from foresail.train.update.batches import compute_advantages, pack_groups, split
from foresail.train.update.flops import count_flops
from foresail.train.update.step import train_step

DATA = Path(__file__).resolve().parents[3] / "shared/data"
GB = 1e9
Figures = dict[str, Any]


def main() -> None:
    options = read_options()
    shape, recipe = SHAPES[options.shape], make_recipe(options)
    tokenizer = Tokenizer.from_str(
        lzma.decompress((DATA / "tokenizers/qwen2_5/tokenizer.json.xz").read_bytes()).decode()
    )
    model = random_model(shape)
    optimizer = build_optimizer(model, recipe.optimizer)
    fleet = build_fleet(model, recipe.engine_settings, recipe.rollout, max_length=recipe.max_length)
    problems = read_problems(tokenizer, options.problems)
    figures: Figures = {"device": torch.cuda.get_device_name(), "shape": options.shape, "steps": []}
    with open_grading(recipe.reward) as grading:
        for step in range(options.steps):
            figures["steps"].append(
                one_step(model, fleet, optimizer, problems, tokenizer, grading, recipe, step)
            )
            print(figures["steps"][-1], flush=True)
    reckoned = recipe.estimate_memory(shape, "cuda")
    figures["estimate_gb"] = {
        "rollout": round((reckoned.weights + reckoned.optimizer + reckoned.kv_cache) / GB, 2),
        "update": round((reckoned.total - max(0, reckoned.kv_cache - reckoned.shared)) / GB, 2),
    }
    print(json.dumps(figures))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=list(SHAPES), default="7B")
    parser.add_argument("--problems", type=int, default=128)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=1024, help="of every response")
    parser.add_argument("--updates", type=int, default=4, help="of a step")
    parser.add_argument("--micro-batch", type=int, default=12_288, help="tokens")
    parser.add_argument("--steps", type=int, default=1)
    return parser.parse_args()


def make_recipe(options: argparse.Namespace) -> Rl:
    return Rl.model_validate(
        {
            "stage": "rl",
            "steps": options.steps,
            "prompts_per_step": options.problems,
            "samples_per_prompt": options.samples,
            "updates_per_step": options.updates,
            "max_prompt_tokens": PROMPT,
            "micro_batch_tokens": options.micro_batch,
            "model": {"path": "random"},
            "data": {"source": "gsm8k"},
            "sampling": {"max_new_tokens": options.tokens},
            "dynamic_sampling": {"enabled": False},
            "rollout": {"drafts": "off"},
            "engine": {"max_running": options.problems * options.samples},
            "optimizer": {"states": "8bit"},
        }
    )


def one_step(
    model: Decoder,
    fleet: Fleet,
    optimizer: AnyOptimizer,
    problems: list[PromptedProblem],
    tokenizer: Tokenizer,
    grading: Grading,
    recipe: Rl,
    step: int,
) -> Figures:
    group_spec = GroupSpec(
        sampling=recipe.sampling, num_samples=recipe.samples_per_prompt, stop_ids=(), seed=0, step=step
    )
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    fleet.update_weights(step)
    with fleet.at_work():
        collected = collect(
            fleet,
            lambda launch: problems[launch],
            group_spec,
            partial(judge, tokenizer=tokenizer, grading=grading),
            controller=Controller.for_all(len(problems)),
            usable=gradable,
            rewards_of=pay_every_second,
        )
    torch.cuda.synchronize()
    rollout = time.perf_counter() - start
    rollout_peak = torch.cuda.max_memory_allocated() + fleet.cache_bytes
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    update = learn(model, optimizer, collected.chosen, recipe)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    tokens = sum(sample.num_response_tokens for group in collected.chosen for sample in group.samples)
    return {
        "rollout_seconds": round(rollout, 2),
        "rollout_tokens_per_second": round(tokens / rollout),
        "rollout_peak_gb": round(rollout_peak / GB, 2),
        "update_seconds": round(seconds, 2),
        "update_mfu": round(update.pop("flops") / seconds / PEAK, 4),
        "update_peak_gb": round(torch.cuda.max_memory_allocated() / GB, 2),
        "step_seconds": round(rollout + seconds, 2),
        **update,
    }


def learn(model: Decoder, optimizer: AnyOptimizer, groups: Sequence[Group], recipe: Rl) -> Figures:
    advantages_GN, flops, results = compute_advantages(groups, recipe.advantage.kind), 0.0, []
    learner, packing = Learner(name="policy", model=model, optimizer=optimizer), 0.0
    for number, part in enumerate(split(len(groups), recipe.updates_per_step)):
        start = time.perf_counter()
        device = model.device
        share = [groups[i] for i in part]
        batches = pack_groups(
            share,
            uniform_advantages(share, advantages_GN[part]),
            version=None,
            aggregation=recipe.loss.aggregation,
            max_new_tokens=recipe.sampling.max_new_tokens,
            micro_batch_tokens=recipe.micro_batch_tokens,
            device=device,
        )
        packing += time.perf_counter() - start
        terms = PolicyTerms(settings=recipe.loss, on_policy=number == 0)
        loss = partial(batch_loss, terms=terms, temperature=1.0)
        results.append(train_step(learner, batches, loss, learning_rate=1e-6))
        flops += sum(count_flops(model.shape, batch) for batch in batches)
    names = [name for name in results[0] if name.startswith("rollout/")]
    return {
        "flops": flops,
        "packing_seconds": round(packing, 3),
        "updates": len(results),
        **{name: results[0][name] for name in names},
    }


def judge(problem: Problem, sample: Sample, *, tokenizer: Tokenizer, grading: Grading) -> Future[Verdict]:
    drawn = [token for token, mask in zip(sample.ids, sample.loss_mask, strict=True) if mask]
    return grading.submit(problem, single_turn(tokenizer.decode(drawn)))


def pay_every_second(problem: Problem, samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> Rewards:
    """Whatever the verdicts are, so that every group has something to learn from."""
    return tuple(float(number % 2) for number in range(len(samples)))


def read_problems(tokenizer: Tokenizer, count: int) -> list[PromptedProblem]:
    with gzip.open(DATA / "math/gsm8k/train.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    problems: list[PromptedProblem] = []
    for number, row in enumerate(rows):
        ids = tokenizer.encode(row["question"]).ids
        if len(ids) <= PROMPT and len(problems) < count:
            prompt = (Message(role="user", content=row["question"]),)
            answer = row["answer"].rpartition("#### ")[2]
            problem = Problem(id=f"gsm8k-{number}", prompt=prompt, answer=answer)
            problems.append(PromptedProblem(problem=problem, ids=tuple(ids)))
    return problems


if __name__ == "__main__":
    main()
