"""The [credit] table: how a sample's advantage is shared among its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.tables.part import CheckedPart

# Keys that need certain values of another key: that key, its values, the keys that need them.
NEEDS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "kind",
        ("pbsd",),
        (
            "level", "form", "student", "strength", "warmup_steps", "low", "high", "temperature",
            "fade", "answer", "min_snr", "min_tokens", "conserve", "additive_weight",
        ),
    ),
    ("kind", ("pbsd", "opsd"), ("hint", "clamp")),
    ("kind", ("opsd",), ("distill_weight",)),
    ("kind", ("turn_rewards",), ("turn_weight",)),
    ("student", ("placebo",), ("withheld",)),
    ("level", ("turn",), ("min_snr", "min_tokens")),
    ("form", ("weights", "raw"), ("low", "high", "temperature", "conserve")),
    ("form", ("additive",), ("additive_weight",)),
)  # fmt: skip


class Credit(CheckedPart):
    """How a sample's advantage is distributed over its tokens."""

    kind: Literal["uniform", "pbsd", "opsd", "turn_rewards", "turn_gae"] = Field(
        "uniform",
        description="uniform: the same advantage for every token; pbsd: turns weighted by their evidence for the "
        "answer; opsd: self-distillation, the teacher is the model with the answer in its prompt; "
        "turn_rewards: adds the advantage of each turn's own reward; turn_gae: GAE over turns, with a critic",
    )
    level: Literal["turn", "token"] = Field("turn", description="pbsd: unit that evidence is summed over")
    form: Literal["weights", "raw", "additive"] = Field(
        "weights",
        description="pbsd: weights: weights from evidence normalised within the group; raw: weights from the plain "
        "sum of evidence; additive: evidence is added to the advantage",
    )
    student: Literal["plain", "placebo", "contrastive", "mixed"] = Field(
        "plain",
        description="pbsd: what the student's prompt says about the answer. plain: nothing; placebo: that there "
        "is one, without it; contrastive: a wrong one; mixed: a wrong one where the sample is right, else nothing",
    )
    hint: str = Field(
        "\n\n(The correct answer is {answer}.)",
        description="pbsd, opsd: text appended to the teacher's prompt; {answer} stands for the answer",
    )
    withheld: str = Field("not shown here", description="student placebo: text put in the answer's place")
    strength: float = Field(
        1.0, ge=0, le=1, description="pbsd: share of the credit that follows the evidence; 0: uniform credit"
    )
    warmup_steps: int = Field(
        0, ge=0, description="pbsd: steps over which strength rises to its full value, linearly"
    )
    low: float = Field(
        0.25, ge=0.001, le=1, description="pbsd: smallest weight, before `conserve` rescales it"
    )
    high: float = Field(4.0, ge=1, le=1000, description="pbsd: largest weight, before `conserve` rescales it")
    temperature: float = Field(
        1.0, gt=0, description="pbsd: divides the evidence; above 1, weights are more equal"
    )
    clamp: float = Field(5.0, gt=0, le=1000, description="pbsd, opsd: largest evidence of one token, in nats")
    fade: bool = Field(
        False, description="pbsd: evidence counts less after turns that speak against the answer"
    )
    answer: Literal["ignored", "counted"] = Field(
        "ignored",
        description="pbsd: whether the tokens of the final answer count as evidence; counted: for tasks where "
        "choosing the answer is a decision, best with fade",
    )
    min_snr: float = Field(
        1.0, ge=0, description="pbsd: smallest signal-to-noise ratio of a turn; evidence below it is not used"
    )
    min_tokens: int = Field(
        4,
        ge=1,
        description="pbsd: smallest number of tokens of a turn; evidence of shorter turns is not used",
    )
    conserve: bool = Field(
        True,
        description="pbsd: rescale weights so that a sample's credit has the same sum as with uniform credit",
    )
    additive_weight: float = Field(
        0.1,
        gt=0,
        le=1,
        description="form additive: added to the advantage per standard deviation of evidence",
    )
    distill_weight: float = Field(
        1.0, gt=0, description="opsd: weight of log teacher - log student beside the advantage"
    )
    turn_weight: float = Field(
        1.0, gt=0, description="turn_rewards: weight of a turn's own advantage beside the outcome's"
    )

    def strength_at(self, step: int) -> float:
        """Steps count from 1; strength 1, warmup_steps 4: .25, .5, .75, 1, 1, …"""
        return self.strength * min(1.0, step / self.warmup_steps) if self.warmup_steps else self.strength

    def mistakes(self) -> Iterator[str]:
        reported = set()
        for other, values, keys in NEEDS:
            if getattr(self, other) in values:
                continue
            for key in keys:
                if getattr(self, key) != type(self).model_fields[key].default and key not in reported:
                    reported.add(key)
                    choices = " or ".join(f'"{value}"' for value in values)
                    yield (
                        f'{key} is for {other} = {choices}, and {other} is "{getattr(self, other)}"; '
                        f"remove {key}, or set {other} = {choices}"
                    )
        if "{answer}" not in self.hint:
            yield (
                "hint does not contain {answer}, so the teacher would know no more than the student; add {answer}"
            )
        if self.kind == "pbsd" and self.form != "additive" and self.low == self.high:
            yield (
                "low and high are both 1, so every turn would have the same weight; set low = 0.25 and "
                'high = 4.0, or kind = "uniform"'
            )


def credit_mistakes(credit: Credit, advantage: str, steps: int) -> Iterator[str]:
    """Checks [credit] against the advantage estimator and the number of steps."""
    if credit.kind == "turn_gae" and advantage != "gae":
        yield (
            f'credit.kind = "turn_gae" needs a critic, and advantage.kind is "{advantage}"; set '
            'advantage.kind = "gae" and add a table [critic]'
        )
    if credit.kind in ("pbsd", "opsd", "turn_rewards") and advantage == "gae":
        yield (
            f'credit.kind "{credit.kind}" distributes one advantage per sample over its tokens, and a critic '
            'gives every token its own; set advantage.kind = "grpo", or credit.kind = "uniform" or "turn_gae"'
        )
    if credit.warmup_steps >= steps:
        yield (
            f"credit.warmup_steps {credit.warmup_steps} leaves none of the {steps} steps at full strength; "
            f"set credit.warmup_steps = {steps // 10}"
        )
