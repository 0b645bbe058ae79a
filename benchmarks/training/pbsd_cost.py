"""What PBSD's scoring adds to a step: seconds of its passes beside those of the update, on a GPU.

Random weights of a real shape, bf16, episodes of several turns with a tool's words between them. `scoring` is all
that credit by turns does, from groups to advantages: teacher and student read every sample. Where the step asks the
trainer for its own log-probabilities anyway (`loss.old_logprobs`), the student's side takes the place of that pass,
`old_pass`.

    python benchmarks/training/pbsd_cost.py --shapes 1.5B

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
from gpu_clock import timed
from shapes import SHAPES
from train_gpu import random_model

from foresail.algorithms.batch_losses import policy_loss
from foresail.recipe.tables.credit import Credit
from foresail.recipe.tables.parts import Optimizer
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import Group, Message, Problem, Sample, Verdict
from foresail.tokenizer.train import train_bpe
from foresail.train.learner import Learner
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.policy.policy_update import add_logprobs
from foresail.train.policy.turn_credit import share_credit
from foresail.train.update.batches import compute_advantages, pack_groups
from foresail.train.update.scoring import score_sequences
from foresail.train.update.step import token_loss, train_step

CREDIT = Credit(kind="pbsd", hint=" ({answer})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=["1.5B"])
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--written", type=int, default=80, help="tokens of a turn that the model writes")
    parser.add_argument("--said", type=int, default=120, help="tokens that the world answers")
    parser.add_argument("--micro-batch", type=int, default=12_288, help="tokens")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures = {name: measure(name, options) for name in options.shapes}
    print(json.dumps({"device": torch.cuda.get_device_name(), **vars(options), "shapes": figures}))


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    model, device = random_model(SHAPES[name]), torch.device("cuda")
    learner = Learner(name="policy", model=model, optimizer=build_optimizer(model, Optimizer(states="8bit")))
    tokenizer = train_bpe(["who wrote it? 0123456789 ()"], vocab_size=280)
    groups = make_groups(options, random.Random(0), tokenizer.encode_prompt([QUESTION]))
    advantages_GN = compute_advantages(groups, "grpo")
    score = partial(
        score_sequences, model, temperature=1.0, micro_batch_tokens=options.micro_batch, device=device
    )
    weigh = partial(
        share_credit, groups, advantages_GN, CREDIT, step=1, tokenizer=tokenizer, max_length=8192, score=score
    )  # fmt: skip
    batches = pack_groups(
        groups,
        weigh().advantages,
        version=None,
        aggregation="token-mean",
        max_new_tokens=8192,
        micro_batch_tokens=options.micro_batch,
        device=device,
    )
    loss = partial(token_loss, loss=lambda logprobs_M, batch: policy_loss(logprobs_M, batch, Loss()))
    update = partial(train_step, learner, batches, loss, learning_rate=1e-6)

    def old_pass() -> list[Any]:
        return [add_logprobs(batch, 1.0, old=model, reference=None) for batch in batches]

    seconds: dict[str, list[float]] = {"update": [], "old_pass": [], "scoring": []}
    for number in range(1 + options.rounds):  # the first one warms up
        for part, work in (("update", update), ("old_pass", old_pass), ("scoring", weigh)):
            took = timed(work)[1]
            if number:
                seconds[part].append(took)
    middle = {part: median(values) for part, values in seconds.items()}
    shares = {
        "with_engine_logprobs": middle["scoring"] / middle["update"],
        "with_trainer_logprobs": (middle["scoring"] - middle["old_pass"]) / middle["update"],
    }
    tokens = sum(batch.ids_T.numel() for batch in batches)
    figures = {"tokens": tokens, **middle, "on_top_of_update": shares}
    print(name, figures, flush=True)
    return figures


QUESTION = Message(role="user", content="who wrote it?")


def make_groups(options: argparse.Namespace, numbers: random.Random, prompt: list[int]) -> list[Group]:
    def sample() -> Sample:
        ids, mask, turns = [*prompt], [0] * len(prompt), [0] * len(prompt)
        for turn in range(options.turns):
            said = options.said if turn else 0
            written = numbers.randint(options.written // 2, 3 * options.written // 2)
            ids += [numbers.randrange(40) for _ in range(said + written)]
            mask += [0] * said + [1] * written
            turns += [turn] * (said + written)
        zeros = [0] * len(ids)
        return Sample(
            ids=ids, loss_mask=mask, logprobs=[-12.0] * len(ids), versions=zeros, turns=turns, finish="stop"
        )

    verdicts = tuple(Verdict(status="correct" if i % 2 else "wrong", score=i % 2) for i in range(8))
    return [
        Group(
            problem=Problem(id=str(number), prompt=(QUESTION,), answer=str(number)),
            samples=tuple(sample() for _ in range(8)),
            verdicts=verdicts,
            rewards=tuple(verdict.score for verdict in verdicts),
        )
        for number in range(options.groups)
    ]


if __name__ == "__main__":
    main()
