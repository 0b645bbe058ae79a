"""What a model says of a text's language, and when that is too close to call."""

from __future__ import annotations

from dataclasses import dataclass

UNDECIDED = "undecided"
OTHER = "other"
NONE = "none"  # a model's label for code and noise


@dataclass(frozen=True, kw_only=True)
class Guess:
    """`best` may be "other", a language that the model does not know. "none" stands for code and noise."""

    best: str
    confidence: float
    second: str
    second_confidence: float

    def language(self, margin: float) -> str:
        """Guess(best="id", confidence=.51, second="ms", second_confidence=.48).language(.1) -> "undecided" """
        sure = self.confidence >= 0.5 and self.confidence - self.second_confidence >= margin
        return self.best if sure and self.best != NONE else UNDECIDED


def guess_from(probabilities: dict[str, float]) -> Guess:
    ranked = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))
    ranked += [(NONE, 0.0)] * 2
    (best, confidence), (second, second_confidence) = ranked[:2]
    return Guess(best=best, confidence=confidence, second=second, second_confidence=second_confidence)
