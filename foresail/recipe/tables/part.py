"""What all tables of a recipe have in common: strict, frozen, and laid over the defaults of their stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator


class Part(BaseModel):
    """Frozen, strict, without unknown keys: `steps = "10"` and `lr = inf` are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def lay_over_defaults(cls, table: Any) -> Any:
        """Keys that a table leaves out have the defaults of its stage.

        Sft sets lr = 1e-5; `[optimizer] warmup = 10` in an SFT recipe must not bring back RL's 1e-6.
        """
        if not isinstance(table, dict):
            return table
        tables = {
            name: field.default.model_dump() | table[name]
            for name, field in cls.model_fields.items()
            if isinstance(field.default, Part) and isinstance(table.get(name), dict)
        }
        return table | tables


class CheckedPart(Part):
    """A table with checks across its keys, all of which are reported at once."""

    @model_validator(mode="after")
    def check(self) -> Self:
        if mistakes := list(self.mistakes()):
            raise ValueError("\n".join(mistakes))
        return self

    def mistakes(self) -> Iterator[str]:
        raise NotImplementedError
