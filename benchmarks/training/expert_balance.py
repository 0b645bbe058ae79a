"""48 experts, 4 active: how evenly they are used at the end of a small pretraining, by how they are balanced.

Arms: both losses decayed (the recipe's default [router]), both constant, corrections moved after each update and no
loss, corrections beside decayed losses, and nothing. Same text, order, weights and rates; each with several seeds.
`max/mean` is the load of the busiest expert over the mean of its layer, in the worst layer, over the last tenth of
the updates together.

    python benchmarks/training/expert_balance.py                     # a GPU: 15 runs of seconds
    python benchmarks/training/expert_balance.py --tiny --seeds 1    # a CPU, a minute or two
    python benchmarks/training/expert_balance.py --picture balance.png
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import Experts, ModelShape
from foresail.recipe.tables.parts import Optimizer
from foresail.recipe.tables.router import Router
from foresail.records import TrainSequence
from foresail.runlog.canvas import CORAL, FAINT, GOLD, INK, NAVY, PLUM, TEAL, new_figure, quiet, save_figure
from foresail.tokenizer.train import train_bpe
from foresail.train.auxiliary.expert_load import ExpertLoad, balance_experts, load_metrics
from foresail.train.learner import Learner
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.optim.schedule import learning_rate
from foresail.train.update.step import token_loss, train_step

DATA = Path(__file__).resolve().parents[3] / "shared/data/text/train"
COLOURS = {"decayed": TEAL, "constant": NAVY, "corrections": CORAL, "both": PLUM, "nothing": GOLD}
SEQUENCE = 256  # tokens
GPU = {"hidden": 256, "layers": 4, "inner": 128, "vocabulary": 4096, "tokens": 16_384, "steps": 300}
TINY = {"hidden": 64, "layers": 2, "inner": 32, "vocabulary": 600, "tokens": 2048, "steps": 80}
Run = dict[str, Any]


def main() -> None:
    options = read_options()
    size = TINY if options.tiny else GPU
    steps = options.steps or size["steps"]
    device = torch.device("cuda" if torch.cuda.is_available() and not options.tiny else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)  # products of 48 small matrices, one after the other
    tokens = read_tokens(options.data, options.languages, size["vocabulary"])
    runs: dict[str, list[Run]] = {}
    settings: dict[str, Router | None] = {
        "decayed": Router(balance=options.balance, final_share=options.final_share),
        "constant": Router(balance=options.balance, schedule="constant"),
        "corrections": Router(balance=0.0, z=0.0, correction_rate=options.correction_rate),
        "both": Router(
            balance=options.balance,
            final_share=options.final_share,
            correction_rate=options.correction_rate,
        ),
        "nothing": None,
    }
    for arm in options.arms:
        runs[arm] = [train(settings[arm], tokens, size, steps, seed, device) for seed in range(options.seeds)]
        print(describe(arm, runs[arm]), flush=True)
    if options.picture is not None:
        draw(runs, options.picture)
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "size": size,
        "steps": steps,
        "text_tokens": len(tokens),
    }
    last = ("max_over_mean", "entropy", "dead", "loss", "seconds")
    for arm, runs_of_arm in runs.items():
        report[arm] = [{name: run[name] for name in last} for run in runs_of_arm]
    print(json.dumps(report))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder of LANGUAGE.jsonl.xz with `text`")
    parser.add_argument("--languages", nargs="+", default=["en", "de", "fr", "es"])
    parser.add_argument("--arms", nargs="+", choices=COLOURS, default=[*COLOURS])
    defaults = Router()
    parser.add_argument("--balance", type=float, default=defaults.balance)
    parser.add_argument("--final-share", type=float, default=defaults.final_share)
    parser.add_argument("--correction-rate", type=float, default=0.001)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--tiny", action="store_true", help="a small shape on a CPU")
    parser.add_argument("--picture", type=Path, help="file for the curves, .png or .pdf")
    return parser.parse_args()


def read_tokens(folder: Path, languages: Sequence[str], vocabulary: int) -> Tensor:
    """All texts end to end, in a random order, as ids of a BPE that was trained on some of them."""
    texts: list[str] = []
    for language in languages:
        with lzma.open(folder / f"{language}.jsonl.xz", "rt", encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    random.Random(0).shuffle(texts)
    tokenizer = train_bpe([text[:2000] for text in texts[:3000]], vocab_size=vocabulary)
    pieces = [text[start : start + 50_000] for text in texts for start in range(0, len(text), 50_000)]
    return torch.tensor([*chain.from_iterable(map(tokenizer.encode, pieces))])


def make_shape(size: dict[str, int]) -> ModelShape:
    return ModelShape(
        family="ernie4_5_moe",
        vocab_size=size["vocabulary"],
        hidden_size=size["hidden"],
        intermediate_size=2 * size["hidden"],
        num_layers=size["layers"],
        num_heads=size["hidden"] // 32,
        num_kv_heads=size["hidden"] // 64,
        head_dim=32,
        max_context=SEQUENCE,
        experts=Experts(routed=48, active=4, inner_size=size["inner"], shared=2, correction=True),
    )


def train(
    router: Router | None, tokens: Tensor, size: dict[str, int], steps: int, seed: int, device: torch.device
) -> Run:
    """One run: curves by step, and what was at the end."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = build_model(make_shape(size), seed=seed, dtype=dtype, device=device)
    settings = Optimizer(lr=2e-3, warmup=steps // 20, schedule="cosine", final_share=0.1, weight_decay=0.1)
    load = ExpertLoad(model, 0.0 if router is None else router.correction_rate)
    learner = Learner(
        name="policy", model=model, optimizer=build_optimizer(model, settings, seed), expert_load=load
    )
    curves: dict[str, list[float]] = {"loss": [], "max_over_mean": []}
    last: list[Tensor] = []
    begin = time.perf_counter()
    for step in range(1, steps + 1):
        balance_experts(model, router, step / steps)
        batches = draw_batches(tokens, size["tokens"], seed * steps + step, device)
        rate = learning_rate(step, steps, settings)
        metrics = train_step(learner, batches, partial(token_loss, loss=sft_loss), learning_rate=rate)
        taken_LE = load.take()
        assert taken_LE is not None
        curves["loss"].append(metrics["sft/nll"])
        curves["max_over_mean"].append(load_metrics(taken_LE)["router/load_max_over_mean"])
        last.append(taken_LE)
    end = load_metrics(torch.stack(last[-max(1, steps // 10) :]).sum(0))
    return {
        "max_over_mean": end["router/load_max_over_mean"],
        "entropy": end["router/load_entropy"],
        "dead": end["router/dead_experts"],
        "loss": fmean(curves["loss"][-max(1, steps // 10) :]),
        "seconds": round(time.perf_counter() - begin, 1),
        "curves": curves,
    }


def draw_batches(tokens: Tensor, num_tokens: int, number: int, device: torch.device) -> list[Any]:
    """Sequences from random places of the text, the same for every arm."""
    count, generator = num_tokens // SEQUENCE, torch.Generator().manual_seed(number)
    starts = torch.randint(len(tokens) - SEQUENCE, (count,), generator=generator).tolist()
    mask = [0] + [1] * (SEQUENCE - 1)
    sequences = [
        TrainSequence(ids=tokens[start : start + SEQUENCE].tolist(), loss_mask=mask) for start in starts
    ]
    weight = 1 / (count * (SEQUENCE - 1))
    return pack(sequences, [weight] * count, max_tokens=num_tokens, device=device)


def describe(arm: str, runs: Sequence[Run]) -> str:
    def told(name: str) -> str:
        return " ".join(f"{run[name]:.3f}" for run in runs)

    dead = " ".join(str(run["dead"]) for run in runs)
    return f"{arm:<12} max/mean {told('max_over_mean')}   dead {dead}   loss {told('loss')}"


def draw(runs: dict[str, list[Run]], path: Path) -> None:
    titles = {"max_over_mean": "Load of the busiest expert over the mean, worst layer", "loss": "Loss"}
    with new_figure((10.5, 3.8)) as figure:
        for place, (name, title) in enumerate(titles.items(), start=1):
            axes = figure.add_subplot(1, 2, place)
            quiet(axes, title=title)
            for arm, runs_of_arm in runs.items():
                for number, run in enumerate(runs_of_arm):
                    values = run["curves"][name]
                    label = arm if number == 0 else None
                    axes.plot(range(1, len(values) + 1), values, color=COLOURS[arm], linewidth=1, label=label)
            axes.set_xlabel("update", color=FAINT)
            axes.legend(frameon=False, labelcolor=INK)
        figure.axes[0].axhline(1.3, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    save_figure(figure, path)


if __name__ == "__main__":
    main()
