"""PBSD against plain GRPO and against credit by single tokens, in the generated multi-hop world.

Every seed has one cold start: episodes that search a chain of relations to its end and, where two sources
contradict each other, believe the wrong one as often as not. Asides are chains as well, on which that decides
nothing. Half of the prompts tell the answer that the episode came to, so that the model knows what it is to be
told: that is PBSD's teacher. From there each arm learns alike but for its credit; `oracle` is told what each turn
decided.

    planted    before any training: rank correlation of evidence and weights with what each turn brought, by context
    train      success in domain, out of domain and on long chains; samples until a fixed success

Arms are processes beside each other. Given again, the command goes on where it was; the last line is JSON.

    python benchmarks/proofs/pbsd.py --parts planted --seeds 0
    python benchmarks/proofs/pbsd.py --arms grpo oracle pbsd mixed token --filter --prompts 8 --hops 2 --jobs 10
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from pbsd_truth import correlate, score_by_truth

from foresail.agents.build import open_episodes
from foresail.data.made.multi_hop import make_problems
from foresail.data.made.multi_hop_names import Person
from foresail.data.made.multi_hop_traces import believe, converse, to_key
from foresail.data.made.multi_hop_world import world_of
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import encode_problems
from foresail.quickstart.agent import MARKS
from foresail.quickstart.reasoning import write_lines
from foresail.quickstart.stages import train_stage
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.credit import Credit
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import Conversations, HeldOut, ProblemSource
from foresail.records import Group, Message, Problem, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.build import build_fleet
from foresail.rollout.collect import NoSignal
from foresail.rollout.groups import GroupSpec
from foresail.rollout.stream import sample_all
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.policy import turn_credit
from foresail.train.starting_point import load_model_and_tokenizer

HINT, WITHHELD = " ({answer})", "also also also"
LIES = 0.5  # how often an unreliable source is believed in the cold start
NUM_SHOWN, NUM_TRAIN = 24_000, 8000
DETOURS, DEPTH = 2, 3  # asides of a question, and their searches: choices that decide nothing
MAX_PROMPT, MAX_NEW, MAX_TURNS = 160, 800, 16
SUCCESS = 0.4  # of the episodes of five steps: how many samples until then
SPLITS = {"test": "split=test,hops={0}", "ood": "split=ood,hops={0}-{1}", "long": "split=long,hops={2}-{3}"}
ASIDES = f"detours={DETOURS},depth={DEPTH}"
PBSD = {"kind": "pbsd", "hint": HINT, "min_tokens": 2, "min_snr": 0.0}
ADDITIVE = PBSD | {"form": "additive", "additive_weight": 0.5, "fade": True}
MIXED = PBSD | {"student": "mixed", "answer": "counted", "fade": True, "form": "raw"}
ARMS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "pbsd": PBSD,
    "additive": ADDITIVE,  # learns from all groups
    "pbsd-fade": PBSD | {"fade": True},
    "answer": PBSD | {"answer": "counted", "fade": True},
    "mixed": MIXED,
    "mixed-z": PBSD | {"student": "mixed", "answer": "counted", "fade": True},
    "answer-raw": PBSD | {"answer": "counted", "fade": True, "form": "raw"},
    "pbsd-placebo": PBSD | {"student": "placebo", "withheld": WITHHELD},
    "pbsd-contrastive": PBSD | {"student": "contrastive"},
    "token": {"kind": "pbsd", "hint": HINT, "level": "token"},
    "additive-shuffled": ADDITIVE,
    "mixed-shuffled": MIXED,
    "oracle": PBSD
    | {"min_tokens": 1},  # evidence is what each turn decided: what credit could be worth at all
    "shuffled": PBSD,  # the teacher is told another problem's answer
    "withheld": PBSD,  # the teacher is told no more than that there is one
}


PLANTED = (
    "pbsd",
    "answer",
    "answer-raw",
    "pbsd-placebo",
    "pbsd-contrastive",
    "mixed",
    "shuffled",
    "mixed-shuffled",
)


def main() -> None:
    options = read_options()
    if options.only:
        seed, arm, rate = options.only
        run_arm(options, int(seed), arm, float(rate))
        return
    options.root.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda seed: start(options, seed, "sft", 0.0), options.seeds))
    report: dict[str, Any] = {"seeds": options.seeds, "steps": options.steps, "device": options.device}
    if "planted" in options.parts:
        report["planted"] = {seed: planted(options, seed) for seed in options.seeds}
        print(json.dumps(report["planted"], indent=1), flush=True)
    if "train" in options.parts:
        jobs = [(s, arm, rate) for s in options.seeds for arm in options.arms for rate in options.rates]
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda job: start(options, *job), jobs))
        report["train"] = {arm: best_of(options, arm) for arm in options.arms}
    print(json.dumps(report))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path("runs/pbsd"))
    parser.add_argument("--parts", nargs="+", choices=("planted", "train"), default=["planted", "train"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--arms", nargs="+", choices=tuple(ARMS), default=["grpo", "pbsd", "token"])
    parser.add_argument("--rates", nargs="+", type=float, default=[3e-4, 1e-3], help="learning rates to try")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--prompts", type=int, default=32, help="of a step, 8 samples each")
    parser.add_argument(
        "--filter", action="store_true", help="draw new groups in the place of those all alike"
    )
    parser.add_argument("--hops", type=int, default=3, help="of a problem in training")
    parser.add_argument("--tests", type=int, default=200, help="held-out problems of each split")
    parser.add_argument("--rl-seed", type=int, help="of reinforcement; default: the cold start's")
    parser.add_argument("--sft-steps", type=int, default=4000)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def start(options: argparse.Namespace, seed: int, arm: str, rate: float) -> None:
    """One run in a process of its own, on one thread: that many fit beside each other."""
    words = ["--root", options.root, "--steps", options.steps, "--sft-steps", options.sft_steps]
    words += ["--prompts", options.prompts, "--hops", options.hops, "--tests", options.tests]
    words += ["--filter"] if options.filter else []
    words += ["--hidden", options.hidden, "--layers", options.layers, "--device", options.device]
    environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    folder = options.root / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{run_name(arm, rate)}.log").open("a") as out:
        subprocess.run(
            [sys.executable, __file__, *map(str, words), "--only", str(seed), arm, str(rate)],
            check=True, stdout=out, stderr=out, env=environment,
        )  # fmt: skip
    print(f"seed {seed}: {run_name(arm, rate)} is done", flush=True)


def run_name(arm: str, rate: float) -> str:
    return f"{arm}-{rate:g}" if rate else arm


# The cold start.


def run_arm(options: argparse.Namespace, seed: int, arm: str, rate: float) -> None:
    folder = options.root / f"seed-{seed}"
    if arm == "sft":
        train_stage(sft_recipe(options, folder, seed))
        return
    control(arm, seed)
    try:
        train_stage(rl_recipe(options, folder, seed, arm, rate))
    except NoSignal as stopped:  # collapsed: a result, not a fault of the benchmark
        print(stopped)


def sft_recipe(options: argparse.Namespace, folder: Path, seed: int) -> Sft:
    tokenizer = write_episodes(folder, seed)
    shape = parts.ModelShape(
        family="qwen3", qk_norm=True, vocab_size=tokenizer.vocab_size, hidden_size=options.hidden,
        intermediate_size=2 * options.hidden, num_layers=options.layers, num_heads=4, num_kv_heads=2,
        head_dim=options.hidden // 4, max_context=1024,
    )  # fmt: skip
    return Sft(
        run=parts.Run(name="sft", root=str(folder), seed=seed, device=options.device),
        model=parts.Model(shape=shape, tokenizer=str(folder / "tokenizer"), dtype="float32"),
        data=(Conversations(source=str(folder / "sft.jsonl")),),
        steps=options.sft_steps,
        batch_size=96,
        max_length=1024,
        micro_batch_tokens=65_536,  # a step costs its launches, whatever its size
        optimizer=parts.Optimizer(lr=2e-3, beta2=0.98, warmup=100, schedule="linear"),
        checkpoints=parts.Checkpoints(every=options.sft_steps),
    )


def write_episodes(folder: Path, seed: int) -> Tokenizer:
    if (folder / "tokenizer" / "tokenizer.json").exists():
        return Tokenizer.load(folder / "tokenizer")
    shown = [
        problem
        for detours in (0, 1, 2)
        for problem in make_problems(
            NUM_SHOWN // 3, seed=seed + 1000 * detours, hops=(1, 4), detours=detours, depth=DEPTH
        )
    ]
    episodes = [credulous(problem, random.Random(f"episode {seed} {problem.id}")) for problem in shown]
    write_lines(folder / "sft.jsonl", [{"messages": [vars(m) for m in episode]} for episode in episodes])
    texts = [message.content for episode in episodes[:3000] for message in episode]
    tokenizer = train_bpe(texts, vocab_size=360, whole_tokens=MARKS, alphabet="seen")
    tokenizer.save(folder / "tokenizer")
    return tokenizer


def credulous(problem: Problem, rng: random.Random) -> tuple[Message, ...]:
    """An episode whose only fault is to believe; half of the prompts tell what it came to."""
    world, queries, believed = world_of(problem.extra), [], dict[Person, Person]()
    for key, truth in zip(problem.extra["searches"], problem.extra["values"], strict=True):
        subject, relation = to_key(key)
        person = believed.get(subject, subject)  # whom it takes for the one that the search is about
        queries.append(f"{person} {relation}")
        believed[Person(*truth.split())] = believe(world, person, relation, LIES, rng)
    answer = believed[Person(*problem.answer.split())]
    episode = converse(problem, queries, str(answer))
    return (
        tuple(turn_credit.with_hint(episode, HINT.format(answer=answer))) if rng.random() < 0.5 else episode
    )


# Reinforcement.


def rl_recipe(options: argparse.Namespace, folder: Path, seed: int, arm: str, rate: float) -> Rl:
    hops = [options.hops + more for more in range(4)]
    held_out = [
        HeldOut(
            source=f"multi-hop:count={options.tests},seed={seed},{split.format(*hops)},{ASIDES}",
            name=name,
            samples=4,
        )
        for name, split in SPLITS.items()
    ]
    rl_seed = seed if options.rl_seed is None else options.rl_seed
    return Rl(
        run=parts.Run(name=run_name(arm, rate), root=str(folder), seed=rl_seed, device=options.device),
        model=parts.Model(path=str(tuned(options, folder)), dtype="float32"),
        data=(ProblemSource(source=f"multi-hop:count={NUM_TRAIN},seed={seed},hops={options.hops},{ASIDES}"),),
        eval=tuple(held_out),
        eval_every=options.steps,
        steps=options.steps,
        prompts_per_step=options.prompts,
        samples_per_prompt=8,
        max_prompt_tokens=MAX_PROMPT,
        sampling=parts.Sampling(max_new_tokens=MAX_NEW),
        environment=Environment(name="multi-hop", max_turns=MAX_TURNS),
        credit=Credit(**ARMS[arm]),
        dynamic_sampling=DynamicSampling(enabled=options.filter, max_rounds=16),
        reward=Reward(grader="qa"),
        optimizer=parts.Optimizer(lr=rate, warmup=2),
        checkpoints=parts.Checkpoints(every=10),
    )


def tuned(options: argparse.Namespace, folder: Path) -> Path:
    return folder / "sft" / "checkpoints" / f"step_{options.sft_steps}"


def control(arm: str, seed: int) -> None:
    """What the teacher of a control arm sees in the place of the answer."""
    if arm.endswith("shuffled"):
        others = [problem.answer for problem in make_problems(500, seed=seed + 1)]
        turn_credit.answers_of = lambda problem: [random.Random(problem.id).choice(others)]
    if arm == "oracle":
        turn_credit.score_groups = score_by_truth
    if arm == "withheld":
        turn_credit.answers_of = lambda problem: [WITHHELD]


def best_of(options: argparse.Namespace, arm: str) -> dict[str, Any]:
    """The arm at its own best learning rate, by success in domain; the other rates are reported as well."""
    by_rate = {rate: [read_run(options, seed, arm, rate) for seed in options.seeds] for rate in options.rates}
    best = max(by_rate, key=lambda rate: fmean(run["test"] for run in by_rate[rate]))
    runs = by_rate[best]
    figures: dict[str, Any] = {
        "rate": best,
        "by_rate": {rate: mean_of(runs_of_rate) for rate, runs_of_rate in by_rate.items()},
    }
    for name in (*SPLITS, "samples_to_success"):
        values = [run[name] for run in runs]
        known = None not in values  # a mean over those that got there would flatter
        figures[name] = {
            "seeds": values,
            "mean": fmean(values) if known else None,
            "stdev": stdev(values) if known and len(values) > 1 else None,
        }
    return figures


def mean_of(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {name: round(fmean(run[name] for run in runs), 4) for name in SPLITS}


def read_run(options: argparse.Namespace, seed: int, arm: str, rate: float) -> dict[str, Any]:
    """Success at the end, none for a run that collapsed on the way; samples until success, None: not reached."""
    records = RunDirectory.open(options.root / f"seed-{seed}" / run_name(arm, rate)).read_metrics()
    last, collapsed = records[-1], records[-1]["step"] < options.steps
    figures: dict[str, Any] = {
        name: 0.0 if collapsed else last[f"val-core/{name}/acc/mean@4"] for name in SPLITS
    }
    steps = [record for record in records if "rollout/accuracy" in record]
    drawn = accumulate(record["rollout/groups_launched"] * 8 for record in steps)
    recent = [fmean(r["rollout/accuracy"] for r in steps[max(0, n - 4) : n + 1]) for n in range(len(steps))]
    reached = (samples for samples, success in zip(drawn, recent, strict=True) if success >= SUCCESS)
    figures["samples_to_success"] = next(reached, None)
    return figures


# Planted turns: which of them matter is known.


def planted(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Rank correlation with what turns decided, in right and in wrong episodes, by what the student is told."""
    folder = options.root / f"seed-{seed}"
    device = torch.device("cuda" if options.device != "cpu" and torch.cuda.is_available() else "cpu")
    settings = parts.Model(path=str(tuned(options, folder)), dtype="float32")
    model, tokenizer = load_model_and_tokenizer(settings, seed=seed, device=device, max_length=1024)
    groups = sample_groups(model, tokenizer, seed, options.hops)
    figures: dict[str, Any] = {"accuracy": fmean(group.pass_rate for group in groups)}
    as_it_is = turn_credit.answers_of, turn_credit.score_groups
    for arm in PLANTED:
        control(arm, seed)
        figures[arm] = correlate(groups, Credit(**ARMS[arm]), model, tokenizer)
        turn_credit.answers_of, turn_credit.score_groups = as_it_is
    return figures


def sample_groups(model: Any, tokenizer: Tokenizer, seed: int, hops: int) -> list[Group]:
    source = parts.Problems(source=f"multi-hop:count=64,seed={seed + 100},hops={hops},{ASIDES}")
    prompted = encode_problems(load_problems(source), tokenizer, MAX_PROMPT)
    sampling = parts.Sampling(max_new_tokens=MAX_NEW)
    spec = GroupSpec(sampling=sampling, num_samples=8, stop_ids=tokenizer.eos_ids, seed=seed, step=1)
    fleet = build_fleet(
        model, parts.Engine(max_running=256), parts.Rollout(), max_length=MAX_PROMPT + MAX_NEW
    )

    def judge(problem: Problem, sample: Sample) -> Any:
        right = f"<answer>{problem.answer}</answer>" in read_trajectory(tokenizer, sample).response
        return settled(Verdict(status="correct" if right else "wrong", score=float(right)))

    with open_episodes(Environment(name="multi-hop", max_turns=MAX_TURNS)) as episodes, fleet.at_work():
        assert episodes is not None
        stream = episodes.stream(tokenizer, MAX_PROMPT + MAX_NEW)
        return [*sample_all(fleet, prompted, spec, judge, stream=stream)]


if __name__ == "__main__":
    main()
