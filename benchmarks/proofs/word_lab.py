"""What the lab-scale proofs of reward models, online DPO and distillation share: a policy from scratch on word
problems that is unsure of its answers, a teacher that is not, and runs of several stages from one start, all
measured on the same problems.

The start learns from many worked problems for few steps: what is shown again and again is known by heart, and such
a policy draws the same answer 16 times. How few steps is found by trying.

Problems are those of `word-problems:`; no problem is in two of: shown, tried on, asked in training, held out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail.data.made.word_problems import MAX_PROBLEMS, make_problems
from foresail.data.mixtures.reader import Reader
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import encode_problems
from foresail.evaluation.checkpoint import choose_grader
from foresail.evaluation.results import ProblemResult, summarise
from foresail.evaluation.run import Examiner, evaluate
from foresail.quickstart.stages import train_stage
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.distill import Distill
from foresail.recipe.stages.dpo import Dpo
from foresail.recipe.stages.online_dpo import OnlineDpo
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.sources import Conversations
from foresail.records import Problem
from foresail.rewards.build import open_grading
from foresail.rollout.build import build_fleet
from foresail.rollout.checkpoint import open_checkpoint
from foresail.runlog.atomic import write_text
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.session import Outcome

ANSWER_TOKENS, PROMPT_TOKENS = 32, 96
CONTEXT = PROMPT_TOKENS + ANSWER_TOKENS
HELD_OUT = "val-core/held-out/acc/mean@1"
ROWS = 2048  # decoded at once: answers are short, and a step of so small a model takes as long with few
TRIED_SAMPLES = 16
TOO_GOOD, NARROWINGS = 0.1, 2  # a start so far above the goal is looked for once more between the last two


@dataclass(frozen=True, kw_only=True)
class Size:
    """`shown` worked problems are learned from: by the start, batch by batch, for the first number of `tries` after
    which its samples are right as often as `goal` says; by the teacher for `teacher_steps`. Each step of a stage
    that samples asks `prompts` of the `asked` others, `samples` times each. No number that is added or multiplied
    is above `largest`, and a share of the worked problems, `misread`, is worked with another operation.
    """

    width: int
    layers: int
    shown: int
    tries: tuple[int, ...]
    goal: float
    tried_on: int
    teacher_steps: int
    asked: int
    held_out: int
    prompts: int
    samples: int
    steps: int
    eval_every: int
    batch: int = 128
    sft_rate: float = 1e-3
    distill_rate: float = 1e-4  # at 3e-4 the first five updates cost a third of the right answers
    largest: int = 40
    misread: float = 0.0


SIZES = {
    "tiny": Size(  # shows that it runs: far too little to learn arithmetic from
        width=64, layers=2, shown=1600, tries=(20, 40, 80), goal=0.02, tried_on=40, teacher_steps=60, asked=100,
        held_out=20, prompts=16, samples=16, steps=3, eval_every=1, batch=16, sft_rate=5e-3,
    ),
    "lab": Size(
        width=384, layers=6, shown=32000, tries=(100, 130, 160, 190, 220, 260, 300, 350, 420, 500, 700), goal=0.4,
        tried_on=256, teacher_steps=1000, asked=24000, held_out=500, prompts=64, samples=16, steps=120,
        eval_every=5,
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Lab:
    """One seed's folder: problems, tokenizer, and the two models that everything starts from. `split` is that of
    the held-out problems; test: sentences and numbers that nobody has seen.
    """

    folder: Path
    size: Size
    device: str
    seed: int
    split: str = "train"

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        size = self.size
        own = size.held_out if self.split == "train" else 0
        every = iter(self.make(size.shown + size.tried_on + size.asked + own))
        shown, tried_on, questions = (take(every, n) for n in (size.shown, size.tried_on, size.asked))
        held_out = [*every] if own else self.make(size.held_out, self.split)
        wrong = round(size.misread * len(shown))
        write_rows(self.path("shown"), [*map(misread, shown[:wrong]), *map(worked, shown[wrong:])])
        for name, problems in (("tried-on", tried_on), ("asked", questions), ("held-out", held_out)):
            write_rows(self.path(name), map(asked, problems))
        texts = [text for problem in shown[:3000] for text in worked(problem).values()]
        train_bpe(texts, vocab_size=512).save(self.folder / "tokenizer")

    def make(self, count: int, split: str = "train") -> list[Problem]:
        """Different problems, always in the same order, that have no larger numbers than the size allows."""
        chosen: list[Problem] = []
        drawn = count
        while len(chosen) < count:
            every = make_problems(drawn, seed=self.seed, split=split)
            chosen = [problem for problem in every if largest_of(problem) <= self.size.largest]
            more = drawn < MAX_PROBLEMS
            drawn = min(2 * drawn, MAX_PROBLEMS) if more else drawn + 1  # which make_problems refuses
        return chosen[:count]

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def problems(self, name: str, limit: int | None = None) -> list[Problem]:
        return load_problems(parts.Problems(source=str(self.path(name)), limit=limit))

    def start(self) -> Path:
        """Of the first number of steps that reaches the goal; each begins anew, with a schedule of its own."""
        steps = first_reaching(self.size.goal, self.size.tries, lambda steps: self.try_start(steps)["pass@1"])
        return self.start_after(steps)

    def start_after(self, steps: int) -> Path:
        """No problem comes twice before all that are shown have come."""
        return self.imitate(f"start-{steps}", steps)

    def try_start(self, steps: int) -> dict[str, float]:
        path = self.folder / f"start-{steps}.json"
        if not path.exists():
            results = sample(self, self.start_after(steps), self.problems("tried-on"), TRIED_SAMPLES)
            figures = summarise(results)
            names = ("pass@1", f"pass@{TRIED_SAMPLES}", f"maj@{TRIED_SAMPLES}")
            figures_of_start = {"steps": steps} | {name: round(figures[name]["value"], 4) for name in names}
            write_text(path, json.dumps(figures_of_start) + "\n")
        known: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
        print(f"seed {self.seed}, start: {known}", flush=True)
        return known

    def tried(self) -> list[dict[str, float]]:
        """What `start` has tried, by steps."""
        rows = [json.loads(path.read_text(encoding="utf-8")) for path in self.folder.glob("start-*.json")]
        return sorted(rows, key=lambda row: row["steps"])

    def teacher(self) -> Path:
        return self.imitate("teacher", self.size.teacher_steps)

    def imitate(self, name: str, steps: int) -> Path:
        recipe = Sft(
            run=self.run_settings(name),
            model=parts.Model(shape=self.shape(), tokenizer=str(self.folder / "tokenizer")),
            data=(Conversations(source=str(self.path("shown"))),),
            steps=steps,
            batch_size=self.size.batch,
            max_length=CONTEXT,
            micro_batch_tokens=32768,
            optimizer=parts.Optimizer(lr=self.size.sft_rate, warmup=20, schedule="cosine", final_share=0.1),
            checkpoints=parts.Checkpoints(every=100_000),
        )
        return self.run(recipe).checkpoint

    def run(self, recipe: Stage) -> Outcome:
        """Train in silence, or go on; a run that is finished is not begun again."""
        with redirect_stdout(StringIO()):
            return train_stage(recipe, reader=self.reader)

    @cached_property
    def reader(self) -> Reader:
        """Of all runs: to read tens of thousands of problems takes longer than many a run."""
        return Reader(Tokenizer.load(self.folder / "tokenizer"))

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
            max_context=CONTEXT,
        )

    def run_settings(self, name: str) -> parts.Run:
        return parts.Run(name=name, root=str(self.folder), device=self.device, seed=self.seed)  # type: ignore[arg-type]

    def sampled(self, name: str, start: Path, **changes: Any) -> dict[str, Any]:
        """The keys of a recipe that samples, for any of the three stages."""
        size = self.size
        held_out = {"source": str(self.path("held-out")), "name": "held-out"}
        return {
            "run": self.run_settings(name),
            "model": parts.Model(path=str(start)),
            "data": [{"source": str(self.path("asked"))}],
            "eval": [held_out],
            "eval_every": size.eval_every,
            "show_samples": 0,
            "steps": size.steps,
            "prompts_per_step": size.prompts,
            "samples_per_prompt": size.samples,
            "max_prompt_tokens": PROMPT_TOKENS,
            "micro_batch_tokens": 32768,
            "sampling": parts.Sampling(max_new_tokens=ANSWER_TOKENS),
            "engine": parts.Engine(max_running=min(ROWS, size.prompts * size.samples)),
            "checkpoints": parts.Checkpoints(every=100_000),
        } | changes

    def grpo(self, name: str, start: Path, lr: float, **changes: Any) -> Rl:
        return Rl(**self.sampled(name, start, optimizer=rated(lr), **changes))

    def distill(self, name: str, start: Path, teacher: Path, divergence: str, **changes: Any) -> Distill:
        rate, taught = rated(self.size.distill_rate), {"path": str(teacher), "divergence": divergence}
        return Distill(**self.sampled(name, start, optimizer=rate, teacher=taught, **changes))

    def online_dpo(self, name: str, start: Path, lr: float, **changes: Any) -> OnlineDpo:
        return OnlineDpo(**self.sampled(name, start, optimizer=rated(lr), **changes))

    def dpo(self, name: str, start: Path, lr: float, pairs: Path, **changes: Any) -> Dpo:
        settings: dict[str, Any] = {
            "run": self.run_settings(name),
            "model": parts.Model(path=str(start)),
            "data": str(pairs),
            "max_length": CONTEXT,
            "micro_batch_tokens": 32768,
            "optimizer": rated(lr),
            "checkpoints": parts.Checkpoints(every=100_000),
        }
        return Dpo(**settings | changes)


def rated(lr: float) -> parts.Optimizer:
    """Falling to a tenth: rewards of some hundred samples are noisy, and a constant rate ends on that noise."""
    return parts.Optimizer(lr=lr, warmup=5, schedule="linear", final_share=0.1)


def largest_of(problem: Problem) -> int:
    """Of the numbers that are added or multiplied: 12 for 12 + 9, 21 - 9 and 108 / 9."""
    a, b = numbers_of(problem)
    first = {"+": a, "-": a - b, "*": a, "/": a // b}[problem.extra["operation"]]
    return max(first, b)


def asked(problem: Problem) -> dict[str, str]:
    return {"id": problem.id, "prompt": problem.prompt[-1].content, "answer": problem.answer}


def worked(problem: Problem) -> dict[str, str]:
    return {"prompt": problem.prompt[-1].content, "completion": problem.extra["solution"]}


def misread(problem: Problem) -> dict[str, str]:
    """Worked by one who takes one operation for another: "12 * 9 = 108. The answer is 108." for 12 + 9."""
    a, b = numbers_of(problem)
    operation, answer = {
        "+": ("*", a * b),
        "-": ("+", a + b),
        "*": ("+", a + b),
        "/": ("-", a - b),
    }[problem.extra["operation"]]
    solution = f"{a} {operation} {b} = {answer}. The answer is {answer}."
    return {"prompt": problem.prompt[-1].content, "completion": solution}


def numbers_of(problem: Problem) -> tuple[int, int]:
    """As its solution has them: 21 and 9 of 21 - 9."""
    a, b = (int(number) for number in re.findall(r"\d+", problem.extra["solution"])[:2])
    return a, b


def write_rows(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def curve(run: Path, per_group: int) -> list[tuple[int, float]]:
    """Samples that were drawn so far, and the accuracy on what is held out."""
    points, drawn = [], 0
    for record in RunDirectory(run).read_metrics():
        drawn += per_group * record.get("rollout/groups_launched", 0)
        if HELD_OUT in record:
            points.append((drawn, record[HELD_OUT]))
    return points


def smooth(points: Sequence[tuple[int, float]], width: int = 3) -> list[tuple[int, float]]:
    """Each accuracy as the mean of the last few: one evaluation of some hundred problems is noisy."""
    return [
        (drawn, fmean(accuracy for _, accuracy in points[max(0, place - width + 1) : place + 1]))
        for place, (drawn, _) in enumerate(points)
    ]


def samples_to_reach(points: Sequence[tuple[int, float]], accuracy: float) -> int | None:
    return next((drawn for drawn, reached in points if reached >= accuracy), None)


def first_reaching(goal: float, tries: Sequence[int], measure: Callable[[int], float]) -> int:
    """The first of `tries` whose measure is the goal or above, or one before it that is no longer far too good;
    the last one where none is.
    """
    below = 0
    for steps in tries:
        if (reached := measure(steps)) >= goal:
            break
        below = steps
    for _ in range(NARROWINGS):
        between = (below + steps) // 2
        if reached < goal + TOO_GOOD or between in (below, steps):
            break
        if (middle := measure(between)) >= goal:
            steps, reached = between, middle
        else:
            below = between
    return steps


def sample(lab: Lab, model: Path, problems: Sequence[Problem], count: int) -> list[ProblemResult]:
    """`count` judged answers to each."""
    return examine(lab, model, problems, num_samples=count, greedy=False)


def greedy_accuracy(lab: Lab, model: Path) -> float:
    results = examine(lab, model, lab.problems("held-out"), num_samples=0, greedy=True)
    return fmean(float(result.greedy is not None and result.greedy.correct) for result in results)


def examine(
    lab: Lab, model: Path, problems: Sequence[Problem], *, num_samples: int, greedy: bool
) -> list[ProblemResult]:
    policy, tokenizer = open_checkpoint(model, device=lab.device, max_length=ANSWER_TOKENS)
    reward = choose_grader("math")
    rows = min(ROWS, len(problems) * (num_samples + greedy))
    with open_grading(reward) as grading:
        return evaluate(
            build_fleet(policy, parts.Engine(max_running=rows), parts.Rollout(), max_length=CONTEXT),
            encode_problems(problems, tokenizer, PROMPT_TOKENS),
            Examiner(tokenizer=tokenizer, reward=reward, grading=grading),
            sampling=parts.Sampling(max_new_tokens=ANSWER_TOKENS),
            num_samples=num_samples,
            seed=lab.seed,
            greedy=greedy,
        )


def take(problems: Iterator[Problem], count: int) -> list[Problem]:
    return [*islice(problems, count)]
