"""What the lab-scale proofs of distillation and online DPO share: a weak policy from scratch on word problems, a
teacher that has seen more of them, and runs of several stages from one start, all measured on the same problems.

Problems are those of `word-problems:`; no problem is in two of: shown to the policy, asked in training, held out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail.data.word_problems import make_problems
from foresail.evaluation.checkpoint import evaluate_checkpoint
from foresail.evaluation.results import ProblemResult
from foresail.recipe import parts
from foresail.recipe.distill import Distill
from foresail.recipe.dpo import Dpo
from foresail.recipe.online_dpo import OnlineDpo
from foresail.recipe.rl import Rl
from foresail.recipe.sft import Sft
from foresail.recipe.shape import ModelShape
from foresail.recipe.sources import Conversations
from foresail.recipe.stage import Stage
from foresail.recipe.stages import stage_function
from foresail.records import Problem
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.train import train_bpe
from foresail.train.session import Outcome

ANSWER_TOKENS, PROMPT_TOKENS = 32, 96
HELD_OUT = "val-core/held-out/acc/mean@1"


@dataclass(frozen=True, kw_only=True)
class Size:
    """The policy sees `shown` worked problems for `sft_steps`, the teacher `teacher_shown` for `teacher_steps`;
    each step of a stage that samples asks `prompts` of the `asked` others, `samples` times each.
    """

    width: int
    layers: int
    shown: int
    sft_steps: int
    teacher_shown: int
    teacher_steps: int
    asked: int
    held_out: int
    prompts: int
    samples: int
    steps: int
    eval_every: int
    batch: int = 64
    sft_rate: float = 1e-3
    rl_rate: float = 1e-4
    distill_rate: float = 3e-4
    dpo_rate: float = 3e-5


SIZES = {
    "tiny": Size(
        width=96, layers=3, shown=3000, sft_steps=600, teacher_shown=6000, teacher_steps=1500, asked=4000,
        held_out=100, prompts=16, samples=8, steps=30, eval_every=2, batch=32, sft_rate=3e-3, rl_rate=3e-4,
        distill_rate=1e-3, dpo_rate=1e-4,
    ),
    "lab": Size(
        width=384, layers=6, shown=3000, sft_steps=400, teacher_shown=24000, teacher_steps=2000, asked=24000,
        held_out=500, prompts=64, samples=16, steps=100, eval_every=5, batch=128,
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Lab:
    """One seed's folder: problems, tokenizer, and the two models that everything starts from."""

    folder: Path
    size: Size
    device: str
    seed: int

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        size = self.size
        every = make_problems(size.teacher_shown + size.asked + size.held_out, seed=self.seed)
        shown, rest = every[: size.teacher_shown], every[size.teacher_shown :]
        write_rows(self.folder / "teacher.jsonl", map(worked, shown))
        write_rows(self.folder / "shown.jsonl", map(worked, shown[: size.shown]))
        write_rows(self.folder / "asked.jsonl", map(asked, rest[: size.asked]))
        write_rows(self.folder / "held-out.jsonl", map(asked, rest[size.asked :]))
        texts = [text for problem in shown for text in worked(problem).values()]
        train_bpe(texts[: 2 * size.shown], vocab_size=512).save(self.folder / "tokenizer")

    def start(self) -> Path:
        return self.imitate("start", "shown.jsonl", self.size.sft_steps)

    def teacher(self) -> Path:
        return self.imitate("teacher", "teacher.jsonl", self.size.teacher_steps)

    def imitate(self, name: str, data: str, steps: int) -> Path:
        recipe = Sft(
            run=self.run_settings(name),
            model=parts.Model(shape=self.shape(), tokenizer=str(self.folder / "tokenizer")),
            data=(Conversations(source=str(self.folder / data)),),
            steps=steps,
            batch_size=self.size.batch,
            max_length=PROMPT_TOKENS + ANSWER_TOKENS,
            micro_batch_tokens=32768,
            optimizer=parts.Optimizer(lr=self.size.sft_rate, warmup=20, schedule="cosine", final_share=0.1),
            checkpoints=parts.Checkpoints(every=100_000),
        )
        return run_once(recipe).checkpoint

    def shape(self) -> ModelShape:
        width = self.size.width
        return ModelShape(
            family="qwen3",
            qk_norm=True,
            vocab_size=512,
            hidden_size=width,
            intermediate_size=8 * width // 3 // 16 * 16,
            num_layers=self.size.layers,
            num_heads=width // 32,
            num_kv_heads=width // 32,
            head_dim=32,
            max_context=PROMPT_TOKENS + ANSWER_TOKENS,
        )

    def run_settings(self, name: str) -> parts.Run:
        return parts.Run(name=name, root=str(self.folder), device=self.device, seed=self.seed)  # type: ignore[arg-type]

    def sampled(self, name: str, start: Path, **changes: Any) -> dict[str, Any]:
        """The keys of a recipe that samples, for any of the three stages."""
        size = self.size
        held_out = {"source": str(self.folder / "held-out.jsonl"), "name": "held-out"}
        return {
            "run": self.run_settings(name),
            "model": parts.Model(path=str(start)),
            "data": [{"source": str(self.folder / "asked.jsonl")}],
            "eval": [held_out],
            "eval_every": size.eval_every,
            "show_samples": 0,
            "steps": size.steps,
            "prompts_per_step": size.prompts,
            "samples_per_prompt": size.samples,
            "max_prompt_tokens": PROMPT_TOKENS,
            "micro_batch_tokens": 32768,
            "sampling": parts.Sampling(max_new_tokens=ANSWER_TOKENS),
            "checkpoints": parts.Checkpoints(every=100_000),
        } | changes

    def grpo(self, name: str, start: Path, **changes: Any) -> Rl:
        rate = parts.Optimizer(lr=self.size.rl_rate, warmup=2)
        return Rl(**self.sampled(name, start, optimizer=rate, **changes))

    def distill(self, name: str, start: Path, teacher: Path, divergence: str, **changes: Any) -> Distill:
        rate = parts.Optimizer(lr=self.size.distill_rate, warmup=2)
        taught = {"path": str(teacher), "divergence": divergence}
        return Distill(**self.sampled(name, start, optimizer=rate, teacher=taught, **changes))

    def online_dpo(self, name: str, start: Path, **changes: Any) -> OnlineDpo:
        rate = parts.Optimizer(lr=self.size.dpo_rate, warmup=2)
        return OnlineDpo(**self.sampled(name, start, optimizer=rate, **changes))

    def dpo(self, name: str, start: Path, pairs: Path, **changes: Any) -> Dpo:
        given: dict[str, Any] = {
            "run": self.run_settings(name),
            "model": parts.Model(path=str(start)),
            "data": str(pairs),
            "max_length": PROMPT_TOKENS + ANSWER_TOKENS,
            "micro_batch_tokens": 32768,
            "optimizer": parts.Optimizer(lr=self.size.dpo_rate, warmup=2),
            "checkpoints": parts.Checkpoints(every=100_000),
        }
        return Dpo(**given | changes)


def asked(problem: Problem) -> dict[str, str]:
    return {"id": problem.id, "prompt": problem.prompt[-1].content, "answer": problem.answer}


def worked(problem: Problem) -> dict[str, str]:
    return {"prompt": problem.prompt[-1].content, "completion": problem.extra["solution"]}


def write_rows(path: Path, rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run_once(recipe: Stage) -> Outcome:
    """In silence; a run that is finished is not begun again, one that is not begins anew."""
    folder = recipe.run.folder
    steps = RunDirectory(folder).checkpoint_steps() if folder.is_dir() else []
    if steps and steps[-1] == recipe.steps:
        return Outcome(run=folder, checkpoint=RunDirectory(folder).checkpoint_path(steps[-1]), finished=True)
    shutil.rmtree(folder, ignore_errors=True)
    run: Callable[[Stage], Outcome] = stage_function(recipe.stage)
    with redirect_stdout(StringIO()):
        return run(recipe)


def curve(run: Path, per_group: int) -> list[tuple[int, float]]:
    """Samples that were drawn so far, and the accuracy on what is held out."""
    found, drawn = [], 0
    for record in RunDirectory(run).read_metrics():
        drawn += per_group * record.get("rollout/groups_launched", 0)
        if HELD_OUT in record:
            found.append((drawn, record[HELD_OUT]))
    return found


def smooth(points: Sequence[tuple[int, float]], width: int = 3) -> list[tuple[int, float]]:
    """Each accuracy as the mean of the last few: one evaluation of some hundred problems is noisy."""
    return [
        (drawn, fmean(accuracy for _, accuracy in points[max(0, place - width + 1) : place + 1]))
        for place, (drawn, _) in enumerate(points)
    ]


def samples_to_reach(points: Sequence[tuple[int, float]], accuracy: float) -> int | None:
    return next((drawn for drawn, reached in points if reached >= accuracy), None)


def sample(lab: Lab, model: Path, problems: parts.Problems, count: int, folder: Path) -> list[ProblemResult]:
    return evaluate_checkpoint(
        model,
        problems,
        parts.Sampling(max_new_tokens=ANSWER_TOKENS),
        num_samples=count,
        output=folder,
        seed=lab.seed,
        device=lab.device,
    )


def greedy_accuracy(lab: Lab, model: Path, folder: Path) -> float:
    results = sample(lab, model, parts.Problems(source=str(lab.folder / "held-out.jsonl")), 0, folder)
    return fmean(float(result.greedy is not None and result.greedy.correct) for result in results)
