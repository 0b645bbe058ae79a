"""Other rotary frequencies for a longer context: the kinds of transformers that we have, by its names.

    RopeScaling(type="yarn", factor=4.0, original_context=32_768).stretch(32_768) -> 131_072

`linear` divides all frequencies by the factor; `llama3` and `yarn` divide the low ones, with a ramp up to the high
ones, and yarn makes cosines and sines larger. `dynamic` raises the base beyond the original context.

In transformers a sequence with dynamic positions has the base of its own length: keys in a cache were turned by
other bases than those after them, and training turns all by yet another. Here engine and trainer agree, so a model
has one base: its own where no sequence of a run is longer than the original context, else that of a sequence
`factor` times as long as that, or of the longest one.
"""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

RopeType = Literal["llama3", "linear", "dynamic", "yarn"]
REQUIRED: dict[RopeType, tuple[str, ...]] = {
    "llama3": ("original_context", "low_freq_factor", "high_freq_factor"),
    "linear": (),
    "dynamic": (),
    "yarn": ("original_context",),
}
OPTIONAL: dict[RopeType, tuple[str, ...]] = {
    "llama3": (),
    "linear": (),
    "dynamic": (),
    "yarn": ("attention_factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow", "truncate"),
}


class RopeScaling(BaseModel):
    """Rotary wavelengths stretched for a longer context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: RopeType = Field("llama3", description="transformers' rope_type")
    factor: float = Field(gt=0, description="how far long wavelengths are stretched")
    original_context: int | None = Field(
        None, gt=0, description="llama3, yarn: context length before scaling"
    )
    low_freq_factor: float | None = Field(
        None, description="llama3: wavelengths with fewer turns in the original context are stretched"
    )
    high_freq_factor: float | None = Field(None, description="llama3: wavelengths with more turns are kept")
    attention_factor: float | None = Field(
        None, ge=0, description="yarn: factor on cosines and sines; default: 0.1 ln(factor) + 1"
    )
    mscale: float | None = Field(
        None, description="yarn: with mscale_all_dim another default, the quotient of two such terms"
    )
    mscale_all_dim: float | None = Field(None, description="yarn: the lower of the two")
    beta_fast: float | None = Field(
        None, ge=0, description="yarn: wavelengths with more turns are kept; default: 32"
    )
    beta_slow: float | None = Field(
        None, ge=0, description="yarn: wavelengths with fewer turns are stretched; default: 1"
    )
    truncate: bool = Field(True, description="yarn: the ramp ends at whole dimensions")

    @model_validator(mode="after")
    def check(self) -> Self:
        for name in REQUIRED[self.type]:
            if getattr(self, name) is None:
                raise ValueError(f"{name} is missing; the rotary scaling {self.type} needs it")
        own = {"type", "factor", *REQUIRED[self.type], *OPTIONAL[self.type]}
        for name, field in type(self).model_fields.items():
            if name not in own and getattr(self, name) != field.default:
                raise ValueError(f"{name} is no key of the rotary scaling {self.type}; remove it")
        low, high = self.low_freq_factor, self.high_freq_factor
        if low is not None and high is not None and low >= high:
            raise ValueError(
                f"low_freq_factor {low:g} is not below high_freq_factor {high:g}; Llama 3 has 1 and 4"
            )
        return self

    def stretch(self, positions: int) -> int:
        """The longest context of a `config.json` with so many max_position_embeddings.

        Of linear and dynamic these are the original ones, by transformers' word; of yarn many files say so, too.
        """
        match self.type:
            case "linear" | "dynamic":
                return max(positions, int(positions * self.factor))
            case "yarn":
                assert self.original_context is not None
                return max(positions, int(self.original_context * self.factor))
        return positions

    def attention(self) -> float:
        """What multiplies cosines and sines, so that scores of attention are larger by its square."""
        if self.type != "yarn":
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale and self.mscale_all_dim:
            return self._grow(self.mscale) / self._grow(self.mscale_all_dim)
        return self._grow(1.0)

    def _grow(self, scale: float) -> float:
        return 1.0 if self.factor <= 1 else 0.1 * scale * math.log(self.factor) + 1.0


def dynamic_base(theta: float, factor: float, longer: float, head_dim: int) -> float:
    """Of sequences that are so many times as long as the context: dynamic_base(1e4, 2.0, 1.0, 64) -> 1e4."""
    if head_dim == 2:
        raise ValueError("rope type 'dynamic' needs heads wider than 2; choose another model")
    return theta * (factor * longer - (factor - 1)) ** (head_dim / (head_dim - 2))
