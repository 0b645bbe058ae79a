"""What a checkpoint holds that is not used here, kept for when it is saved. No torch here.

    unused = read_unused("checkpoints/MiMo-7B")   # config.json, and modeling_mimo.py beside it
    unused.complete(config)                       # our config.json with its auto_map, attention_dropout, …

A key that is read is written as the model now is, every other one as it was. `auto_map` names the Python files that
transformers runs for such a model. It stays, and those of the files that lie beside the checkpoint, as long as
model_type and architecture do: MiMo without its MTP layers is a Qwen2, a reward model is of another class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foresail.recipe.shape.hf_files import ModelConfig, read_json

CODE = "auto_map"
OTHER_NAMES = {"dtype"}  # of what we write as torch_dtype


@dataclass(frozen=True, kw_only=True)
class Unused:
    """`config` is the whole file; `code` are the Python files beside it, by name."""

    config: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def positions(self) -> int | None:
        positions: int | None = self.config.get("max_position_embeddings")
        return positions

    def complete(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """A `config.json` of ours with the keys that are not ours."""
        read = {*ModelConfig.model_fields, *OTHER_NAMES}
        more = {key: value for key, value in self.config.items() if key not in read and key not in config}
        if not self._is_of(config):
            more.pop(CODE, None)
        return {**config, **more}

    def complete_rope(self, rope: Mapping[str, Any]) -> dict[str, Any]:
        """The same for rotary positions of the same type."""
        before = self.config.get("rope_scaling") or self.config.get("rope_parameters") or {}
        if before.get("rope_type", before.get("type", "default")) != rope["rope_type"]:
            return dict(rope)
        more = {key: value for key, value in before.items() if key not in rope and key != "rope_theta"}
        return {**rope, **more}

    def code_for(self, config: Mapping[str, Any]) -> Mapping[str, bytes]:
        """To be written beside a `config.json` of ours."""
        return self.code if self._is_of(config) else {}

    def _is_of(self, config: Mapping[str, Any]) -> bool:
        """Whether the code still describes this model."""
        known = [key for key in ("model_type", "architectures") if self.config.get(key) is not None]
        return all(config[key] == self.config[key] for key in known)


NOTHING_UNUSED = Unused()


def read_unused(directory: Path) -> Unused:
    config = read_json(directory / "config.json")
    code = sorted(directory.glob("*.py")) if CODE in config else []
    return Unused(config=config, code={file.name: file.read_bytes() for file in code})
