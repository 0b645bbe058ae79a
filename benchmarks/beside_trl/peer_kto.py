"""TRL's side of the part kto of `vs_trl.py`: a folder with request.json in, lines of JSON on stdout out.

Runs in the interpreter that has TRL, so nothing here may import foresail. Rows come as texts: which answers stand
behind which prompts is TRL's own doing.

    python peer_kto.py losses FOLDER    # what the rows are as ids, then losses and gradients of one batch of them
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peer_dpo import one_batch
from peer_pairs import VERSIONS
from peer_reports import say
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import KTOConfig, KTOTrainer  # type: ignore[import-not-found]

IDS = ("prompt_ids", "completion_ids", "KL_completion_ids")


def main() -> None:
    folder = Path(sys.argv[2])
    answer_losses(folder, json.loads((folder / "request.json").read_text()))


def answer_losses(folder: Path, request: dict[str, Any]) -> None:
    """For each setting the loss, metrics and rows as ids, and the gradients in NUMBER.safetensors."""
    for number, setting in enumerate(request["settings"]):
        trainer = make_trainer(folder, request, setting)
        rows = list(trainer.train_dataset)
        trainer.model.train()
        loss = trainer.compute_loss(trainer.model, trainer.data_collator(rows))
        loss.backward()
        gradients = {name: weight.grad for name, weight in trainer.model.named_parameters()}
        save_file(gradients, folder / f"{number}.safetensors")
        metrics = {
            name: sum(values) / len(values)
            for name, values in trainer._metrics["train"].items()
            if name.startswith(("rewards/", "logps/")) or name == "kl"
        }
        ids = [{name: row[name] for name in IDS if name in row} for row in rows]
        say(loss=loss.item(), metrics=metrics, rows=ids)
    say(versions=VERSIONS)


def make_trainer(folder: Path, request: dict[str, Any], setting: dict[str, Any]) -> KTOTrainer:
    """`swapped`: the reference is trained, and the model is the reference."""
    names = ["checkpoint", "reference"]
    model, reference = (request[name] for name in (names[::-1] if setting.pop("swapped", False) else names))
    return KTOTrainer(
        model=model,
        ref_model=AutoModelForCausalLM.from_pretrained(reference, dtype=torch.float32),
        processing_class=AutoTokenizer.from_pretrained(request["checkpoint"]),
        train_dataset=Dataset.from_list(request["rows"]),
        args=KTOConfig(
            per_device_train_batch_size=len(request["rows"]),
            max_length=request["max_length"],
            **one_batch(folder),
            **setting,
        ),
    )


if __name__ == "__main__":
    main()
