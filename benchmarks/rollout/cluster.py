"""What processes of their own, and Ray, cost and give: on this machine, with a small model and lengths with a tail.

    python benchmarks/rollout/cluster.py    # needs Ray: make test-ray makes an environment with it
    python benchmarks/rollout/cluster.py --parts sync recovery --gigabytes 1

cost         the same RL run with its engine in the trainer's process, in a worker process and in a Ray actor:
             seconds of a step, the median over steps, and the share that is not there in one process. Runs take
             turns, so that a busy machine is busy for all of them
throughput   tokens a second of the same requests on 1, 2, … engines
sync         seconds for a GB of weights, by transport, until every engine has proven that it has them
recovery     seconds from a kill under load until another engine is in its place, has the weights, and reports

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import torch

from foresail.data.made.arithmetic import direct, make_problems
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.model.decoder import Decoder
from foresail.model.device import choose_library
from foresail.model.hf import build_model
from foresail.ray_cluster import open_cluster
from foresail.recipe.estimates.machine import Room
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Checkpoints, Engine, Model, Optimizer, Rollout, Run, Sampling
from foresail.recipe.tables.sources import ProblemSource
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet
from foresail.rollout.plan import SampleSpec
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.train import train_bpe
from foresail.train.stages.rl import run_rl

PROMPT, NEW = 64, 512
VOCAB = 128  # fresh weights stop with about one token in so many: lengths with a tail, 512 at most
SHAPE = {"hidden_size": 128, "intermediate_size": 384, "num_layers": 4, "num_heads": 4, "num_kv_heads": 2}
PUSHES = 5
NO_TRAINER = Room(cpus=0, gpus=0)
Table = dict[str, Any]


def shape_of(vocab_size: int, **changes: int) -> ModelShape:
    sizes = {"head_dim": 32, "max_context": PROMPT + NEW} | SHAPE | changes
    return ModelShape(vocab_size=vocab_size, **sizes)


# The cost of a step.

KINDS: dict[str, Table] = {
    "in process": {},
    "worker process": {"rollout": Rollout(workers=1)},
    "ray colocated": {"rollout": Rollout(workers=1), "cluster": Cluster(kind="ray")},
    "ray separate": {
        "rollout": Rollout(workers=1),
        "cluster": Cluster(kind="ray", placement="separate", worker_cpus=0.5),
    },
}


def measure_cost(steps: int, rounds: int) -> Table:
    seconds: dict[str, dict[str, list[float]]] = {
        kind: {"step": [], "rollout": [], "weight_sync": []} for kind in KINDS
    }
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = write_tokenizer(Path(folder) / "tokenizer")
        for number in range(rounds):
            for kind, changes in KINDS.items():
                root = Path(folder) / f"{number} {kind}"
                for record in run_once(tokenizer, root, steps, changes)[1:]:  # the first step warms up
                    for part, values in seconds[kind].items():
                        values.append(record.get(f"timing_s/{part}", 0.0))
                print(f"  {kind}: {median(seconds[kind]['step']):.2f} s a step", flush=True)
    table = {
        kind: {part: median(values) for part, values in parts.items()} for kind, parts in seconds.items()
    }
    plain = table["in process"]["step"]
    return {
        kind: {**parts, "overhead_percent": 100 * (parts["step"] / plain - 1)}
        for kind, parts in table.items()
    }


def write_tokenizer(folder: Path) -> Path:
    texts = [
        text for p in make_problems(200, seed=0, steps=(2, 2)) for text in (p.prompt[-1].content, direct(p))
    ]
    train_bpe(texts, vocab_size=VOCAB, alphabet="seen").save(folder)
    return folder


def run_once(tokenizer: Path, root: Path, steps: int, changes: Table) -> list[Table]:
    from foresail.tokenizer.tokenizer import Tokenizer

    recipe = Rl(
        run=Run(name="rl", root=str(root), device="cpu"),
        model=Model(
            shape=shape_of(Tokenizer.load(tokenizer).vocab_size), tokenizer=str(tokenizer), dtype="float32"
        ),
        data=(ProblemSource(source="arithmetic:count=200,steps=2"),),
        steps=steps,
        prompts_per_step=8,
        samples_per_prompt=8,
        max_prompt_tokens=PROMPT,
        micro_batch_tokens=4096,
        sampling=Sampling(max_new_tokens=NEW),
        dynamic_sampling=DynamicSampling(enabled=False),
        optimizer=Optimizer(lr=1e-6),
        checkpoints=Checkpoints(every=1000),
        **changes,
    )
    with redirect_stdout(StringIO()):
        outcome = run_rl(recipe)
    return [record for record in RunDirectory(outcome.run).read_metrics() if record["step"]]


# Engines without a trainer.


@contextmanager
def opened(model: Decoder, kind: str, workers: int, requests: int = 64) -> Iterator[Fleet]:
    """`kind` is worker or ray."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = build_fleet(
            model,
            Engine(max_running=requests),
            Rollout(workers=workers),
            max_length=PROMPT + NEW,
            cluster=Cluster(kind="ray") if kind == "ray" else None,
            logs=Path(folder),
        )
        try:
            fleet.update_weights(0)
            yield fleet
        finally:
            fleet.close()


def launch(fleet: Fleet, groups: int, samples: int = 8) -> None:
    for _ in range(groups):
        group = fleet.next_group
        keys = [noise_key(0, 1, f"{group}", sample) for sample in range(samples)]
        requests = [
            Request(
                id=f"{group}.{sample}",
                prompt=tuple(range(1, 33)),
                key=key,
                sampling=Sampling(max_new_tokens=NEW),
                stop_ids=(0,),
            )
            for sample, key in enumerate(keys)
        ]
        specs = [
            SampleSpec(id=request.id, group=group, sample=sample, prompt_tokens=32, max_tokens=NEW)
            for sample, request in enumerate(requests)
        ]
        fleet.launch(specs, requests)


def work_off(fleet: Fleet, disturb: Callable[[], None] = lambda: None) -> int:
    """Tokens until nothing is left."""
    tokens = 0
    while fleet.busy:
        tokens += sum(len(ended.completion.ids) for ended in fleet.work())
        disturb()
        time.sleep(0.001)
    return tokens


def measure_throughput(numbers: list[int]) -> list[Table]:
    rows, model = [], build_model(shape_of(VOCAB), seed=0)
    for kind in ("worker", "ray"):
        for workers in numbers:
            with opened(model, kind, workers) as fleet:
                launch(fleet, 2)
                work_off(fleet)  # warms up
                launch(fleet, 8)
                start = time.perf_counter()
                tokens = work_off(fleet)
                rate = tokens / (time.perf_counter() - start)
            rows.append({"kind": kind, "engines": workers, "tokens_per_second": rate})
            print(f"  {workers} engines ({kind}): {rate:,.0f} tokens/s", flush=True)
    return rows


TRANSPORTS: dict[str, Any] = {"ray objects, buckets": "objects", "gloo broadcast, buckets": "broadcast"}


def measure_sync(gigabytes: float, engines: int) -> list[Table]:
    """Each time after every weight has changed; the first push, to engines without weights, is not counted.

    The least of some pushes: what else the machine does can only add to it.
    """
    rows = []
    hidden, vocab = 1024, 4096
    layer = build_model(
        shape_of(vocab, hidden_size=hidden, intermediate_size=4 * hidden, num_layers=1), seed=0
    )
    each = sum(p.nbytes for p in layer.blocks.parameters())
    layers = max(1, round(gigabytes * 1e9 / each))
    shape = shape_of(vocab, hidden_size=hidden, intermediate_size=4 * hidden, num_layers=layers)
    for transport in ("shared memory, one copy", *TRANSPORTS):
        model = build_model(shape, seed=0)
        size = sum(parameter.nbytes for parameter in model.parameters()) / 1e9
        with transported(model, transport, engines) as fleet:
            fleet.update_weights(0)
            seconds = min(push_changed(fleet, model, version) for version in range(1, 1 + PUSHES))
        rows.append({"transport": transport, "gb": size, "engines": engines, "s_per_gb": seconds / size})
        print(f"  {transport}, {engines} engines: {seconds / size:.2f} s/GB", flush=True)
    return rows


@torch.no_grad()
def push_changed(fleet: Fleet, model: Decoder, version: int) -> float:
    for parameter in model.parameters():
        parameter.mul_(1.01)
    start = time.perf_counter()
    fleet.update_weights(version)
    return time.perf_counter() - start


@contextmanager
def transported(model: Decoder, transport: str, engines: int) -> Iterator[Fleet]:
    small = Engine(max_running=2, kv_tokens=4 * (PROMPT + NEW))
    rollout, length = Rollout(workers=engines), PROMPT + NEW
    with tempfile.TemporaryDirectory() as folder:
        if transport in TRANSPORTS:
            cluster = Cluster(
                kind="ray", placement="separate", worker_cpus=0.1, transport=TRANSPORTS[transport]
            )
            fleet = build_fleet(model, small, rollout, max_length=length, cluster=cluster, logs=Path(folder))
        else:
            fleet = build_fleet(model, small, rollout, max_length=length)
        try:
            yield fleet
        finally:
            fleet.close()


def measure_recovery(times: int) -> list[Table]:
    rows, model = [], build_model(shape_of(VOCAB), seed=0)
    for kind in ("worker", "ray"):
        with opened(model, kind, 2) as fleet:
            seconds = [recover(fleet) for _ in range(times)]
        rows.append({"kind": kind, "kills": times, "recovery_s": median(seconds), "worst_s": max(seconds)})
        print(f"  recovery ({kind}): {median(seconds):.1f} s", flush=True)
    return rows


def recover(fleet: Fleet) -> float:
    before, killed, back = {*fleet.instances}, 0.0, 0.0
    while not back:
        launch(fleet, 4)

        def look() -> None:
            nonlocal killed, back
            now = time.perf_counter()
            at_work: list[Any] = [one for one in fleet.instances.values() if one.load]
            if not killed and at_work:
                os.kill(process_of(at_work[0]), signal.SIGKILL)
                killed = now
            new: list[Any] = [one for name, one in fleet.instances.items() if name not in before]
            if not back and any(one.num_reports for one in new):
                back = now

        work_off(fleet, look)
    return back - killed


def process_of(instance: Any) -> int:
    if hasattr(instance, "process"):
        return int(instance.process.pid)
    from ray._private.state import actors

    return int(actors(instance.channel.actor._actor_id.hex())["Pid"])


PARTS = ("cost", "throughput", "sync", "recovery")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engines", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--kills", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    choose_library(torch.float32)
    results: Table = {"cores": len(os.sched_getaffinity(0))}
    if "cost" in arguments.parts:
        results["cost"] = measure_cost(arguments.steps, arguments.rounds)
    with open_cluster(Cluster(kind="ray"), NO_TRAINER):
        if "throughput" in arguments.parts:
            results["throughput"] = measure_throughput(arguments.engines)
        if "sync" in arguments.parts:
            results["sync"] = [
                row for count in arguments.engines for row in measure_sync(arguments.gigabytes, count)
            ]
        if "recovery" in arguments.parts:
            results["recovery"] = measure_recovery(arguments.kills)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
