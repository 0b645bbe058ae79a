"""The [credit] table: how a sample's advantage is shared among its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.tables.parts import CheckedPart

# Keys that only say something beside another one: key, its values, keys that need one of them.
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
    """From a sample's advantage to one for each of its tokens."""

    kind: Literal["uniform", "pbsd", "opsd", "turn_rewards", "turn_gae"] = Field(
        "uniform",
        description="uniform: all tokens alike; pbsd: turns by their evidence for the answer; opsd: "
        "self-distillation, with what the model says of each token once it is told the answer; turn_rewards: with "
        "rewards of single turns; turn_gae: a critic's estimate for each turn",
    )
    level: Literal["turn", "token"] = Field("turn", description="pbsd: what evidence is gathered over")
    form: Literal["weights", "raw", "additive"] = Field(
        "weights",
        description="pbsd: weights from evidence as compared within the group; raw: from its sum as it is; "
        "additive: added to the advantage",
    )
    student: Literal["plain", "placebo", "contrastive", "mixed"] = Field(
        "plain",
        description="pbsd: what the student is told: nothing; that there is an answer, without it; a wrong one; "
        "mixed: a wrong one where the sample is right, else nothing",
    )
    hint: str = Field(
        "\n\n(The correct answer is {answer}.)",
        description="pbsd, opsd: what the teacher is told behind the prompt; {answer} is the answer",
    )
    withheld: str = Field("not shown here", description="student placebo: what stands in the answer's place")
    strength: float = Field(
        1.0, ge=0, le=1, description="pbsd: share of the credit that goes by evidence; 0: uniform"
    )
    warmup_steps: int = Field(0, ge=0, description="pbsd: steps until the full strength")
    low: float = Field(0.25, ge=0.001, le=1, description="pbsd: least weight, before credit is conserved")
    high: float = Field(4.0, ge=1, le=1000, description="pbsd: greatest weight, before credit is conserved")
    temperature: float = Field(1.0, gt=0, description="pbsd: above 1, evidence makes less of a difference")
    clamp: float = Field(5.0, gt=0, le=1000, description="pbsd, opsd: most that one token counts, in nats")
    fade: bool = Field(
        False, description="pbsd: evidence counts less behind turns that speak against the answer"
    )
    answer: Literal["ignored", "counted"] = Field(
        "ignored",
        description="pbsd: whether the final answer's tokens are evidence as well; counted: where choosing it is a "
        "decision, best with fade",
    )
    min_snr: float = Field(
        1.0, ge=0, description="pbsd: least signal against noise of a turn's evidence; below it is not used"
    )
    min_tokens: int = Field(4, ge=1, description="pbsd: fewest tokens of a turn whose evidence is used")
    conserve: bool = Field(
        True, description="pbsd: a sample's tokens have the same credit in sum as uniform ones"
    )
    additive_weight: float = Field(
        0.1, gt=0, le=1, description="form additive: what a standard deviation of evidence adds"
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
            yield "hint does not hold {answer}, so the teacher would know no more than the student; add it"
        if self.kind == "pbsd" and self.form != "additive" and self.low == self.high:
            yield (
                "low and high are both 1, so every turn would weigh the same; set low = 0.25 and high = 4.0, "
                'or kind = "uniform"'
            )


def credit_mistakes(credit: Credit, advantage: str, steps: int) -> Iterator[str]:
    """What of the table does not go with the recipe's estimator or its number of steps."""
    if credit.kind == "turn_gae" and advantage != "gae":
        yield (
            f'credit.kind = "turn_gae" is a critic\'s, and advantage.kind is "{advantage}"; '
            'set advantage.kind = "gae" and add a table [critic]'
        )
    if credit.kind in ("pbsd", "opsd", "turn_rewards") and advantage == "gae":
        yield (
            f'credit.kind "{credit.kind}" shares out the advantage of a whole sample, and a critic gives every '
            'token its own; set advantage.kind = "grpo", or credit.kind = "uniform" or "turn_gae"'
        )
    if credit.warmup_steps >= steps:
        yield (
            f"credit.warmup_steps {credit.warmup_steps} leaves none of the {steps} steps at full strength; "
            f"set credit.warmup_steps = {steps // 10}"
        )
