"""A run's LoRA pairs and their files: a folder that PEFT loads, and from which a run resumes exactly.

    adapters = Adapters(model, recipe.lora, base="checkpoints/qwen", seed=0)
    adapters.save(trainer)   # trainer/adapter: adapter_config.json, adapter_model.safetensors
    adapters.load(trainer)

Merged weights are rounded, so a resumed run loads the starting model again, with these files; a checksum shows that
the starting model is unchanged.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf_names import SCORE_HEAD, TensorPart, weight_parts
from foresail.model.lora import LowRankLinear, add_pairs, base_of, init_pairs, pairs_of
from foresail.model.shards import gather_whole, put_rows
from foresail.model.weights import checksum
from foresail.recipe.shape.hf_files import AdapterConfig, read_typed
from foresail.recipe.shape.projections import projections_of
from foresail.recipe.tables.parts import Lora

FOLDER, WEIGHTS, CONFIG = "adapter", "adapter_model.safetensors", "adapter_config.json"


class Adapters:
    """The pairs of a model, attached if it has none; `base` is the starting model's name."""

    def __init__(self, model: Decoder, settings: Lora, *, base: str | None, seed: int) -> None:
        if not pairs_of(model):
            add_pairs(model, settings)
        init_pairs(model, seed=seed)
        self.model, self.settings, self.base = model, settings, base

    @cached_property
    def base_checksum(self) -> str:
        """A checksum of the frozen weights: all but a reward model's head."""
        base = base_of(self.model)
        if base.shape.scores:
            base.head = None
        return f"{checksum(base):x}"

    def save(self, trainer: Path) -> None:
        """All ranks call it; rank 0 writes."""
        folder, metadata = trainer / FOLDER, {"format": "pt", "base_checksum": self.base_checksum}
        tensors = {}
        for name, (weight, rows, part) in self.places().items():
            if (whole := gather_whole(weight, to=0)) is not None:
                mine = whole[rows.start : rows.stop]
                tensors[name] = (mine if part is None else part.to_hf(mine)).to("cpu", copy=True).contiguous()
        if not tensors:
            return
        folder.mkdir()
        save_file(tensors, folder / WEIGHTS, metadata=metadata)
        (folder / CONFIG).write_text(json.dumps(self.config(), indent=2) + "\n", encoding="utf-8")

    @torch.no_grad()
    def load(self, trainer: Path) -> None:
        file, ours = trainer / FOLDER / WEIGHTS, self.places()
        try:
            with safe_open(file, framework="pt") as opened:
                expected = (opened.metadata() or {}).get("base_checksum")
            theirs = load_file(file)
            config = read_typed(trainer / FOLDER / CONFIG, AdapterConfig)
        except (OSError, ValueError, SafetensorError) as error:
            raise ValueError(
                f"{file.parent} cannot be read ({error}); remove {trainer.parent} to resume from the checkpoint "
                "before it"
            ) from error
        own_sizes = {name: (len(rows), *weight.shape[1:]) for name, (weight, rows, _) in ours.items()}
        sizes = {name: tensor.shape for name, tensor in theirs.items()}
        if sizes != own_sizes or config.lora_alpha != self.settings.alpha:
            raise ValueError(
                f"{file} has other pairs than [lora] asks for; set its rank, alpha and targets as they were"
            )
        if expected != self.base_checksum:
            raise ValueError(
                f"{self.base or 'the fresh model'} is not what {file} was trained beside (checksum "
                f"{self.base_checksum}, not {expected}); bring back the weights the run began with, in the same "
                f"model.dtype, or start a new run from the merged ones in {trainer.parent}"
            )
        for name, (weight, rows, part) in ours.items():
            put_rows(weight, rows.start, theirs[name] if part is None else part.from_hf(theirs[name]))

    def places(self) -> dict[str, tuple[Tensor, range, TensorPart | None]]:
        """Of every A and B, by PEFT's name for it, the parameter, its rows there, and for B its outputs; and a
        reward model's head, which learns with them.
        """
        places: dict[str, tuple[Tensor, range, TensorPart | None]] = {}
        for part in weight_parts(self.model.shape):
            owner, _, leaf = part.parameter.rpartition(".")
            matrix = self.model.get_submodule(owner)
            if not isinstance(matrix, LowRankLinear) or leaf != "weight":
                continue
            if (pair := matrix.pair(part.start)) is not None:
                name = f"base_model.model.{part.hf_name.removesuffix('.weight')}"
                places[f"{name}.lora_A.weight"] = matrix.A, pair[0], None
                places[f"{name}.lora_B.weight"] = matrix.B, pair[1], part
        if self.model.shape.scores and self.model.head is not None:
            places[f"base_model.model.{SCORE_HEAD}"] = self.model.head.weight, range(1), None
        return places

    def config(self) -> dict[str, object]:
        return {
            "peft_type": "LORA",
            "task_type": "SEQ_CLS" if self.model.shape.scores else "CAUSAL_LM",
            "modules_to_save": ["score"] if self.model.shape.scores else None,
            "base_model_name_or_path": self.base,
            "r": self.settings.rank,
            "lora_alpha": self.settings.alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": [f"{name}_proj" for name in projections_of(self.settings.targets)],
            "inference_mode": True,
        }
