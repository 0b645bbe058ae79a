"""The part kto of `vs_trl.py`: losses of judged answers, of Foresail's stage and of TRL's KTOTrainer, in float32.

Weights, rows and the reference, another model, are the same on both sides. TRL tokenises the rows, puts answers
behind other prompts and cuts these at max_length; Foresail takes its ids, does the same of its own, and packs them
into several micro-batches, while TRL pads everything into one batch. What must agree: the sequences behind other
prompts, the loss, the metrics of the same name, and the gradient of every parameter.

Once more with both models in each other's place: then the mean log-ratio is below 0, and counts as 0.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpo_losses import CPU, LIMIT, MICRO_BATCH_TOKENS, make_reference
from losses import GradientKeeper, make_model
from process import HERE, replies
from safetensors.torch import load_file
from torch import Tensor

from foresail.algorithms.unpaired_losses import unpaired_loss
from foresail.model.decoder import Decoder
from foresail.model.hf_names import weight_parts
from foresail.recipe.tables.preferences import UnpairedLoss
from foresail.records import TrainAnswer, TrainSequence
from foresail.train.learner import Learner
from foresail.train.references.reference import score_compared, with_reference
from foresail.train.stages.kto import estimate_kl, mismatch_answers, over_answers
from foresail.train.update.scoring import score_sequences
from foresail.train.update.split_answers import pack_answer_share
from foresail.train.update.step import token_loss, train_step
from foresail.world import ONE_PROCESS

ANSWERS, PROMPT_LETTERS, MAX_LENGTH = 12, (3, 30), 48
AT_ONCE: dict[str, Any] = {"micro_batch_tokens": MICRO_BATCH_TOKENS, "device": CPU, "temperature": 1.0}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One loss as both name it; `swapped`: the reference is trained, and compared with the model."""

    name: str
    ours: UnpairedLoss
    swapped: bool = False

    @property
    def theirs(self) -> dict[str, Any]:
        return {"loss_type": self.ours.kind, "swapped": self.swapped} | {
            key: getattr(self.ours, key) for key in ("beta", "desirable_weight", "undesirable_weight")
        }


SETTINGS = (
    Setting(name="KTO", ours=UnpairedLoss(beta=0.3)),
    Setting(name="KTO, KL below 0", ours=UnpairedLoss(beta=0.3), swapped=True),
    Setting(
        name="KTO, weights",
        ours=UnpairedLoss(beta=0.1, desirable_weight=1.5, undesirable_weight=0.6),
    ),
    Setting(name="APO zero, unpaired", ours=UnpairedLoss(kind="apo_zero_unpaired", beta=0.3)),
)


def measure_losses(folder: Path, peer_python: str) -> dict[str, Any]:
    """Figures by setting; `agrees` says whether all lie within the limit."""
    model, reference = make_model(folder / "model"), make_reference(folder / "reference", folder / "model")
    rows = make_rows()
    *told, versions = ask_for_losses(folder, rows, peer_python)
    print(
        f"\nLosses of judged answers and gradients of one batch, float32: {ANSWERS} answers\n  "
        f"{'':<24}{'loss':>12}{'difference':>12}{'gradient norm':>15}{'difference':>12}{'metrics':>12}{'KL':>9}"
    )
    figures: dict[str, Any] = {"limit": LIMIT, "settings": {}, **versions}
    for number, (setting, theirs) in enumerate(zip(SETTINGS, told, strict=True)):
        gradients = load_file(folder / f"{number}.safetensors")
        sides = (reference, model) if setting.swapped else (model, reference)
        differences = compare(*sides, read_rows(theirs["rows"], rows), setting, theirs, gradients)
        figures["settings"][setting.name] = differences
        print(
            f"  {setting.name:<24}{differences['loss']:>12.6f}{differences['loss_difference']:>12.1e}"
            f"{differences['gradient_norm']:>15.6f}{differences['gradient_difference']:>12.1e}"
            f"{differences['metric_difference']:>12.1e}{differences['kl']:>9.4f}",
            flush=True,
        )
    figures["agrees"] = all(
        max(differences["loss_difference"], differences["gradient_difference"]) < LIMIT
        for differences in figures["settings"].values()
    )
    return figures


def make_rows() -> list[dict[str, Any]]:
    """Each fits MAX_LENGTH tokens; behind other prompts some do not."""
    draw = random.Random(0)

    def text(length: int) -> str:
        return "".join(draw.choice("0123456789+-*=") for _ in range(length))

    rows = []
    for _ in range(ANSWERS):
        prompt = text(draw.randint(*PROMPT_LETTERS))
        answer = text(draw.randint(1, MAX_LENGTH - 1 - len(prompt)))
        rows.append({"prompt": prompt, "completion": answer, "label": draw.random() < 0.5})
    return rows


def read_rows(ids: Sequence[dict[str, list[int]]], rows: Sequence[dict[str, Any]]) -> list[TrainAnswer]:
    """As TRL has tokenised them."""
    answers = []
    for number, (row, told) in enumerate(zip(ids, rows, strict=True)):
        prompt, answer = row["prompt_ids"], row["completion_ids"]
        mask = [0] * len(prompt) + [1] * len(answer)
        sequence = TrainSequence(ids=[*prompt, *answer], loss_mask=mask)
        answers.append(TrainAnswer(name=str(number), answer=sequence, desirable=told["label"]))
    return answers


def ask_for_losses(folder: Path, rows: list[dict[str, Any]], peer_python: str) -> list[dict[str, Any]]:
    request = {
        "checkpoint": str(folder / "model"),
        "reference": str(folder / "reference"),
        "rows": rows,
        "max_length": MAX_LENGTH,
        "settings": [setting.theirs for setting in SETTINGS],
    }
    (folder / "request.json").write_text(json.dumps(request))
    command = [peer_python, str(HERE / "peer_kto.py"), "losses", str(folder)]
    return list(replies(command, folder / "trl.log", 300))


def check_mismatched(answers: list[TrainAnswer], told: Sequence[dict[str, list[int]]]) -> None:
    """TRL says what it puts behind each prompt."""
    for answer, row in zip(answers, told, strict=True):
        theirs = [*row["prompt_ids"], *row["KL_completion_ids"]][:MAX_LENGTH]
        assert answer.mismatched is not None and answer.mismatched.ids == theirs, (
            "other answers behind prompts"
        )


def compare(
    model: Decoder,
    reference: Decoder,
    answers: list[TrainAnswer],
    setting: Setting,
    theirs: dict[str, Any],
    their_gradients: dict[str, Tensor],
) -> dict[str, float]:
    if setting.ours.estimates_kl:
        answers = mismatch_answers(answers, MAX_LENGTH)
        check_mismatched(answers, theirs["rows"])
    known = with_reference(answers, score_compared(partial(score_sequences, reference, **AT_ONCE), answers))
    kl = estimate_kl(partial(score_sequences, model, **AT_ONCE), known)
    keeper = GradientKeeper(model)
    learner = Learner(name="policy", model=model, optimizer=keeper)
    batches = [*pack_answer_share(known, ONE_PROCESS, max_tokens=MICRO_BATCH_TOKENS, device=CPU)]
    loss = partial(token_loss, loss=partial(unpaired_loss, settings=setting.ours, kl=kl))
    ours = over_answers(train_step(learner, batches, loss, learning_rate=0.0), known, kl)
    squares, square = 0.0, 0.0
    for part in weight_parts(model.shape):
        gradient = keeper.kept[part.parameter].narrow(0, part.start, part.sizes[0])
        their_gradient = their_gradients.pop(part.hf_name)
        squares += (gradient - their_gradient).double().square().sum().item()
        square += their_gradient.double().square().sum().item()
    assert not their_gradients, f"TRL has gradients of {sorted(their_gradients)}, Foresail has none"
    return {
        "loss": ours["loss"],
        "loss_difference": abs(ours["loss"] - theirs["loss"]),
        "gradient_norm": square**0.5,
        "gradient_difference": (squares / square) ** 0.5,
        "metric_difference": max(abs(ours[name] - value) for name, value in theirs["metrics"].items()),
        "micro_batches": len(batches),
        "kl": kl,
    }
