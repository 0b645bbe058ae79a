"""Foresail beside TRL, one run on one machine: losses, seconds a step, reward against time, memory.

Parts losses, speed and race are reinforcement beside GRPOTrainer, sft is fine-tuning beside SFTTrainer.

TRL may live in an interpreter of its own. Both sides get the same checkpoints, prompts, samples, lengths, updates,
precision and threads, and each runs in a process of its own. Figures are printed as they come; pictures and
figures.json go to the output folder. The last line is JSON.

    python benchmarks/vs_trl.py --peer-python PATH/TO/python                          # on a CPU: everything
    python benchmarks/vs_trl.py --peer-python PATH/TO/python --parts losses           # half a minute
    python benchmarks/vs_trl.py --peer-python python3 --device cuda --parts speed     # five minutes on an H200
    python benchmarks/vs_trl.py --peer-python python3 --device cuda --parts race --model CHECKPOINT
    python benchmarks/vs_trl.py --peer-python PATH/TO/python --parts dpo              # losses and steps of DPO
    python benchmarks/vs_trl.py --peer-python PATH/TO/python --parts reward           # steps of a reward model
    python benchmarks/vs_trl.py --peer-python PATH/TO/python --parts sft --model CHECKPOINT
    python benchmarks/vs_trl.py --peer-python python3 --device cuda --parts sft --model CHECKPOINT
    python benchmarks/vs_trl.py --parts scaling                                       # needs no TRL
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beside_trl.process import SideFailed

if TYPE_CHECKING:
    from beside_trl.pair_load import PairLoad

PARTS = ("losses", "speed", "race", "scaling", "sft", "dpo", "reward")


def main() -> None:
    options = read_options()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before torch is loaded, here and on both sides
    options.output.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "device": options.device,
        "threads": options.threads,
    }
    print(", ".join(f"{name} {value}" for name, value in figures.items()), flush=True)
    try:
        measure(options, figures)
    except SideFailed as failure:
        raise SystemExit(f"{failure}\n--peer-python names an interpreter with TRL") from failure
    print(json.dumps(figures))


def measure(options: argparse.Namespace, figures: dict[str, Any]) -> None:
    """All parts in turn; figures.json has what is known, for a run may be cut off."""
    measures = {
        "losses": measure_losses,
        "speed": measure_speed,
        "race": measure_race,
        "scaling": measure_scaling,
        "dpo": measure_dpo,
        "reward": measure_reward,
        "sft": measure_sft,
    }
    for part in options.parts:
        for found in measures[part](options):
            figures[part] = found
            (options.output / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peer-python", default=sys.executable, help="an interpreter with TRL; default: this one"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="default: all on a CPU, speed on a GPU")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--output", type=Path, default=Path("runs/vs-trl"), help="pictures and figures.json")
    parser.add_argument("--threads", type=int, help="of each process; default: 1 on a CPU, 8 beside a GPU")
    parser.add_argument("--loads", nargs="+", help="speed, dpo: by name; default: all of the device")
    parser.add_argument(
        "--reference-each-step",
        action="store_true",
        help="dpo: do not keep what the reference says, on both sides",
    )
    parser.add_argument("--rounds", type=int, help="speed: of each side in turn; default: 3, on a GPU 1")
    parser.add_argument("--steps", type=int, help="speed: counted steps a round; default: 4, on a GPU 8")
    parser.add_argument("--peer-steps", type=int, help="of TRL; default: as many, on a GPU 2")
    parser.add_argument(
        "--seconds", type=float, default=90.0, help="speed on a GPU: after which a side is stopped"
    )
    parser.add_argument(
        "--peer-weights",
        choices=("float32", "bfloat16"),
        default="float32",
        help="TRL on a GPU: its mixed precision, or bfloat16 without float32 masters",
    )
    parser.add_argument(
        "--recompute", action="store_true", help="speed: recompute activations, on both sides"
    )
    parser.add_argument("--sft-loss-steps", type=int, default=50, help="sft: steps whose losses are compared")
    parser.add_argument(
        "--peer-modes",
        nargs="+",
        choices=("packed", "padded"),
        default=["packed", "padded"],
        help="sft: TRL's",
    )
    parser.add_argument(
        "--peer-attention", nargs="+", default=["sdpa"], help="sft: TRL's, such as sdpa flex_attention"
    )
    parser.add_argument("--race-steps", type=int, default=40)
    parser.add_argument("--race-rates", type=float, nargs="+", help="default: 3e-4 1e-3 3e-3, on a GPU 2e-5")
    parser.add_argument("--race-seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--race-seconds", type=float, default=1800.0, help="after which a side is stopped")
    parser.add_argument(
        "--model", type=Path, default=Path("checkpoints/SmolLM2-135M-Instruct"), help="on a GPU"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a glance: small loads, one round, one short race"
    )
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    options.parts = options.parts or (("speed",) if on_gpu else PARTS)
    options.threads = options.threads or (8 if on_gpu else 1)
    options.rounds = options.rounds or (1 if on_gpu or options.quick else 3)
    options.race_rates = options.race_rates or ([2e-5] if on_gpu else [3e-4, 1e-3, 3e-3])
    options.steps = options.steps or (2 if options.quick else 8 if on_gpu else 4)
    options.peer_steps = options.peer_steps or (2 if on_gpu else options.steps)
    if options.quick:
        options.race_steps, options.race_rates, options.race_seeds = 10, [1e-3], [1]
    return options


# torch is loaded with the parts, after the number of threads is set.


Figures = Iterator[dict[str, Any]]


def measure_losses(options: argparse.Namespace) -> Figures:
    from beside_trl import losses

    with tempfile.TemporaryDirectory() as folder:
        yield losses.measure_losses(Path(folder), options.peer_python)


def measure_speed(options: argparse.Namespace) -> Figures:
    from beside_trl import speed

    plan = speed.Plan(
        peer_python=options.peer_python,
        rounds=options.rounds,
        steps=options.steps,
        peer_steps=options.peer_steps,
        seconds=options.seconds if options.device == "cuda" else 600.0,
        weights=options.peer_weights,
        recompute=options.recompute,
    )
    loads = [load for load in speed.LOADS.values() if load.device == options.device]
    if options.loads:
        loads = [speed.LOADS[name] for name in options.loads]
    if options.quick:
        loads = [speed.smaller(load) for load in loads]
    found = {}
    for load in loads:
        found[load.name] = speed.measure_speed(load, plan)
        yield found


def measure_race(options: argparse.Namespace) -> Figures:
    from beside_trl import race
    from beside_trl.track import arithmetic, word_problems

    home, on_gpu = options.output / "race", options.device == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        plan = race.Race(
            peer_python=options.peer_python,
            track=word_problems(home, options.model) if on_gpu else arithmetic(home),
            runs=Path(folder),
            rates=tuple(options.race_rates),
            seeds=tuple(options.race_seeds),
            steps=options.race_steps,
            seconds=options.race_seconds,
        )
        yield from race.measure_race(plan, options.output)


def measure_dpo(options: argparse.Namespace) -> Figures:
    from beside_trl.dpo import measure_dpo as measure_pairs
    from beside_trl.pair_rounds import Plan

    plan = Plan(
        peer_python=options.peer_python,
        rounds=options.rounds,
        steps=options.steps,
        seconds=options.seconds if options.device == "cuda" else 600.0,
        kept=not options.reference_each_step,
        weights=options.peer_weights,
        recompute=options.recompute,
    )
    yield from measure_pairs(pair_loads(options), plan)


def measure_reward(options: argparse.Namespace) -> Figures:
    from beside_trl.pair_rounds import Plan
    from beside_trl.reward_model import measure_reward as measure_pairs

    plan = Plan(
        peer_python=options.peer_python,
        rounds=options.rounds,
        steps=options.steps,
        seconds=options.seconds if options.device == "cuda" else 600.0,
        weights=options.peer_weights,
        recompute=options.recompute,
    )
    yield from measure_pairs(pair_loads(options), plan)


def pair_loads(options: argparse.Namespace) -> list[PairLoad]:
    from beside_trl.pair_load import LOADS, smaller

    loads = [load for load in LOADS.values() if load.device == options.device]
    if options.loads:
        loads = [LOADS[name] for name in options.loads]
    return [*map(smaller, loads)] if options.quick else loads


def measure_scaling(options: argparse.Namespace) -> Figures:
    from beside_trl import scaling

    yield from scaling.measure_scaling(options.device, options.output)


def measure_sft(options: argparse.Namespace) -> Figures:
    """Losses first, then the speed of each load; `--loads none` leaves speed out."""
    from beside_trl import sft

    found: dict[str, Any] = {}
    if options.sft_loss_steps:
        for losses in sft.measure_losses(
            options.device, options.peer_python, options.model, steps=options.sft_loss_steps, seconds=1800.0
        ):
            found["losses"] = losses
            yield found
    plan = sft.SftPlan(
        peer_python=options.peer_python,
        rounds=options.rounds,
        steps=options.steps,
        seconds=options.seconds if options.device == "cuda" else 600.0,
        weights=options.peer_weights,
        recompute=options.recompute,
        modes=tuple(options.peer_modes),
        attentions=tuple(options.peer_attention),
    )
    for load in sft.LOADS.values():
        if load.name in options.loads if options.loads else load.device == options.device:
            found[load.name] = sft.measure_speed(load, plan)
            yield found


if __name__ == "__main__":
    main()
