"""TRL's side of the SFT part of `vs_trl.py`: FOLDER/request.json in, lines of JSON on stdout out.

    python sft_peer.py FOLDER

Runs in the interpreter that has TRL, so nothing here may import foresail. The trainer is made and called as TRL's
documentation says; conversations come as token ids and labels, which it takes as they are.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One machine, no network: say so before the libraries look for either.
os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

from datasets import Dataset
from peer_reports import now, peak_gb, say, wait_to_go_on
from transformers import TrainerCallback
from trl import SFTConfig, SFTTrainer  # type: ignore[import-not-found]

VERSIONS = {name: version(name) for name in ("trl", "transformers", "accelerate", "torch")}


def main() -> None:
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    rows = json.loads((folder / "conversations.json").read_text())
    data = Dataset.from_list([{"input_ids": row["ids"], "labels": labels(row)} for row in rows])
    on_cpu = request["device"] == "cpu"
    reporter = Reporter()
    trainer = CountingTrainer(
        model=request["checkpoint"],
        train_dataset=data,
        callbacks=[reporter],
        args=SFTConfig(
            output_dir=str(folder / "trl"),
            max_steps=request["steps"],
            model_init_kwargs={"dtype": request["weights"], "attn_implementation": request["attention"]},
            use_cpu=on_cpu,
            bf16=request["bfloat16"],
            gradient_checkpointing=request["recompute"],
            report_to="none",
            logging_strategy="no",
            save_strategy="no",
            eval_strategy="no",
            disable_tqdm=True,
            dataloader_num_workers=0,
            dataloader_pin_memory=not on_cpu,
            **request["settings"],
        ),
    )
    trainer.reads_losses = request["reads_losses"]
    reporter.trainer = trainer
    say(versions=VERSIONS, rows=len(trainer.train_dataset))
    trainer.train()


def labels(row: dict[str, Any]) -> list[int]:
    return [token if learnt else -100 for token, learnt in zip(row["ids"], row["loss_mask"], strict=True)]


class CountingTrainer(SFTTrainer):
    """SFTTrainer that counts the tokens of a step and, where it is asked to, keeps its losses."""

    reads_losses = False

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.tokens, self.loss = 0, 0.0

    def training_step(self, model: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        self.tokens += inputs["input_ids"].numel() - count_padding(inputs)
        loss = super().training_step(model, inputs, *arguments, **named)
        if self.reads_losses:
            self.loss += loss.item()
        return loss


def count_padding(inputs: Any) -> int:
    return int((inputs["attention_mask"] == 0).sum()) if "attention_mask" in inputs else 0


class Reporter(TrainerCallback):
    trainer: CountingTrainer

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        wait_to_go_on(0)
        self.began, self.cpu = now(), time.process_time()

    def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        end, cpu, trainer = now(), time.process_time(), self.trainer
        say(
            step=state.global_step,
            loss=trainer.loss,
            tokens=trainer.tokens,
            seconds={"step": end - self.began, "cpu": cpu - self.cpu},
            peak_gb=peak_gb(),
        )
        trainer.tokens, trainer.loss = 0, 0.0
        if state.global_step == 1:
            wait_to_go_on(1)
        self.began, self.cpu = now(), time.process_time()


if __name__ == "__main__":
    main()
