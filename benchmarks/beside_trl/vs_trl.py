"""Foresail beside TRL, one run on one machine: losses, seconds a step, reward against time, memory.

Parts losses, speed and race are reinforcement beside GRPOTrainer, sft is fine-tuning beside SFTTrainer.

TRL may live in an interpreter of its own. Both sides get the same checkpoints, prompts, samples, lengths, updates,
precision and threads, and each runs in a process of its own. Figures are printed as they come; pictures and
figures.json go to the output folder. The last line is JSON.

    python benchmarks/beside_trl/vs_trl.py --peer-python PATH/TO/python       # on a CPU: everything

    --peer-python PATH/TO/python --parts losses                              # half a minute
    --peer-python python3 --device cuda --parts speed                        # five minutes on an H200
    --peer-python python3 --device cuda --parts race --model CHECKPOINT
    --peer-python PATH/TO/python --parts dpo                                 # losses and steps of DPO
    --peer-python PATH/TO/python --parts kto                                 # losses of KTO
    --peer-python PATH/TO/python --parts reward                              # steps of a reward model
    --peer-python PATH/TO/python --parts sft --model CHECKPOINT
    --peer-python python3 --device cuda --parts sft --model CHECKPOINT
    --peer-python python3 --device cuda --parts sft dpo reward --speed-only --together 7
    --peer-python python3 --device cuda --parts dpo reward --speed-only --float32
    --parts scaling                                                          # needs no TRL
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

from process import SideFailed
from turns import Turns

PARTS = ("losses", "speed", "race", "scaling", "sft", "dpo", "kto", "reward")
IN_GROUPS = ("sft", "dpo", "reward")  # the parts that know --together and --float32


def main() -> None:
    began, options = time.monotonic(), read_options()
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
    print(f"{time.monotonic() - began:.0f} s in all")
    print(json.dumps(figures))


def measure(options: argparse.Namespace, figures: dict[str, Any]) -> None:
    """All parts in turn, or side by side; figures.json has what is known, for a run may be cut off."""
    from models import Models

    measures = {
        "losses": measure_losses,
        "speed": measure_speed,
        "race": measure_race,
        "scaling": measure_scaling,
        "dpo": measure_dpo,
        "kto": measure_kto,
        "reward": measure_reward,
        "sft": measure_sft,
    }
    writing = threading.Lock()

    def measure_part(part: str) -> None:
        for found in going[part]:
            with writing:
                figures[part] = found
                (options.output / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        options.models = Models(Path(folder))
        options.turns = Turns(options.together)
        going = {part: measures[part](options) for part in options.parts}
        options.turns.map(measure_part, options.parts)


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
    parser.add_argument("--loads", nargs="+", help="by name; default: all of the device")
    parser.add_argument(
        "--reference-each-step",
        action="store_true",
        help="dpo: do not keep what the reference says, on both sides",
    )
    parser.add_argument(
        "--speed-only", action="store_true", help="sft, dpo: steps, without comparing losses before"
    )
    parser.add_argument(
        "--together",
        type=int,
        default=1,
        help="sft, dpo, reward: so many processes start and warm up at once; each is timed alone all the same",
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
        "--float32",
        action="store_true",
        help="sft, dpo, reward: compute in float32 on both sides, also on a GPU",
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
    if options.together > 1 and not {*options.parts} <= {*IN_GROUPS}:
        parser.error(f"--together is for the parts {', '.join(IN_GROUPS)}")
    if options.float32 and not {*options.parts} <= {*IN_GROUPS}:
        parser.error(f"--float32 is for the parts {', '.join(IN_GROUPS)}")
    if options.float32 and options.peer_weights == "bfloat16":
        parser.error("--peer-weights bfloat16 contradicts --float32")
    if options.quick:
        options.race_steps, options.race_rates, options.race_seeds = 10, [1e-3], [1]
    return options


# torch is loaded with the parts, after the number of threads is set.


Figures = Iterator[dict[str, Any]]


def measure_losses(options: argparse.Namespace) -> Figures:
    import losses

    with tempfile.TemporaryDirectory() as folder:
        yield losses.measure_losses(Path(folder), options.peer_python)


def measure_kto(options: argparse.Namespace) -> Figures:
    import kto_losses

    with tempfile.TemporaryDirectory() as folder:
        yield kto_losses.measure_losses(Path(folder), options.peer_python)


def measure_speed(options: argparse.Namespace) -> Figures:
    import speed

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
    import race
    from track import arithmetic, word_problems

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
    import dpo

    plan = dpo.DpoPlan(**common_plan(options), kept=not options.reference_each_step)
    return dpo.measure_dpo(pair_loads(options), plan, losses=not options.speed_only)


def measure_reward(options: argparse.Namespace) -> Figures:
    import plan
    import reward_model_steps

    return reward_model_steps.measure_reward(pair_loads(options), plan.Plan(**common_plan(options)))


def pair_loads(options: argparse.Namespace) -> list[Any]:
    import pairs

    loads = chosen(pairs.LOADS, options)
    return [*map(pairs.smaller, loads)] if options.quick else loads


def measure_scaling(options: argparse.Namespace) -> Figures:
    import scaling

    yield from scaling.measure_scaling(options.device, options.output)


def measure_sft(options: argparse.Namespace) -> Figures:
    import sft

    return sft.measure_sft(
        chosen(sft.LOADS, options),
        sft.SftPlan(
            **common_plan(options), modes=tuple(options.peer_modes), attentions=tuple(options.peer_attention)
        ),
        model=options.model,
        device=options.device,
        loss_steps=0 if options.speed_only else options.sft_loss_steps,
    )


def chosen(loads: Mapping[str, Any], options: argparse.Namespace) -> list[Any]:
    """By name, those that the part has; `--loads none` leaves speed out."""
    names = options.loads or [name for name, load in loads.items() if load.device == options.device]
    return [loads[name] for name in names if name in loads]


def common_plan(options: argparse.Namespace) -> dict[str, Any]:
    """Of a part that has its sides in groups."""
    return {
        "peer_python": options.peer_python,
        "rounds": options.rounds,
        "steps": options.steps,
        "peer_steps": options.peer_steps,
        "seconds": options.seconds if options.device == "cuda" else 600.0,
        "models": options.models,
        "turns": options.turns,
        "weights": options.peer_weights,
        "recompute": options.recompute,
        "float32": options.float32,
    }


if __name__ == "__main__":
    main()
