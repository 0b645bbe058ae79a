"""A checkpoint that is loaded once, then evaluated on any number of problem sets and modes.

    with Evaluator(Path("runs/rl/checkpoints/step_300"), max_new_tokens=512) as evaluator:
        for mode in (True, False):
            problems = Problems(source="test.jsonl", thinking=mode)
            evaluator.evaluate(problems, sampling, num_samples=8, output=Path(f"eval/{mode}"))

Every evaluation writes records.jsonl (one line per problem, all attempts with their texts) and summary.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from foresail.data.mixtures.reader import Reader
from foresail.data.problems.prompts import PromptedProblem, encode_problems
from foresail.evaluation.checkpoint import choose_grader, make_folder
from foresail.evaluation.results import ProblemResult, write_results
from foresail.evaluation.run import Examiner, evaluate
from foresail.recipe.reward_function import Function, name_of
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem
from foresail.rewards.build import open_grading
from foresail.rewards.grading import Grading
from foresail.rollout.answering.answerer import open_answerer
from foresail.rollout.build import build_fleet
from foresail.rollout.checkpoint import check_context, choose_engine, open_checkpoint
from foresail.rollout.fleet import Fleet
from foresail.rollout.stream import Stream, StreamKind
from foresail.tokenizer.tokenizer import Tokenizer

TryGrading = Callable[[Grading, Sequence[Problem], Reward, Tokenizer], None]


class EpisodeSource(Protocol):
    """The environment of episodes (`agents.build.Episodes`, which this room must not import)."""

    @property
    def stop(self) -> tuple[str, ...]: ...

    @property
    def names_stops(self) -> bool: ...

    def reader(self, tokenizer: Tokenizer) -> Reader: ...

    def stream(self, tokenizer: Tokenizer, max_length: int) -> StreamKind: ...


class Evaluator:
    """`max_new_tokens`: the least that a sliding window must hold. `prompt_tokens`: room for prompts that a program
    writes. `try_grading` checks a grader before it is used (`check.grading`).
    """

    def __init__(
        self,
        checkpoint: Path,
        *,
        max_new_tokens: int,
        device: str = "auto",
        dtype: str = "auto",
        template_options: Mapping[str, Any] | None = None,
        episodes: EpisodeSource | None = None,
        prompt_tokens: int = 0,
        try_grading: TryGrading = lambda grading, problems, reward, tokenizer: None,
    ) -> None:
        self.checkpoint, self.device = checkpoint, device
        self.model, tokenizer = open_checkpoint(
            checkpoint,
            device=device,
            dtype=dtype,
            max_length=max_new_tokens,
            template_options=template_options,
        )
        self.reader = Reader(tokenizer) if episodes is None else episodes.reader(tokenizer)
        self.tokenizer = self.reader.tokenizer
        self.episodes, self.prompt_tokens, self.try_grading = episodes, prompt_tokens, try_grading

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the model's memory."""
        del self.model

    def encode(self, problems: parts.Problems, max_new_tokens: int) -> list[PromptedProblem]:
        """All problems with their prompts, each of which leaves room for a response."""
        context = self.model.shape.max_context
        prompted = encode_problems(self.reader.load(problems), self.tokenizer, context)
        check_context(self._longest(prompted), max_new_tokens, context)
        return prompted

    def evaluate(
        self,
        problems: parts.Problems,
        sampling: parts.Sampling,
        *,
        num_samples: int,
        output: Path,
        grader: Function | Reward = "math",
        seed: int = 0,
    ) -> list[ProblemResult]:
        """One greedy attempt and `num_samples` samples per problem; records and summary go to `output`."""
        reward = choose_grader(grader)
        sampling = sampling.model_copy(update={"stop": (*sampling.stop, *self.stop)})
        prompted = self.encode(problems, sampling.max_new_tokens)
        make_folder(output)  # before hours of work, not after
        attempts = len(prompted) * (1 + num_samples)
        with self.at_work(prompted, sampling, reward, attempts=attempts, prints=output / "reward.log") as (
            fleet,
            examiner,
        ):
            results = evaluate(
                fleet,
                prompted,
                examiner,
                sampling=sampling,
                num_samples=num_samples,
                seed=seed,
                stream=self.stream(prompted, sampling),
            )
        settings = {"checkpoint": str(self.checkpoint), "grader": name_of(reward.grader), "seed": seed}
        settings |= {"data": problems.model_dump(), "sampling": sampling.model_dump()}
        write_results(output, results, settings)
        return results

    @contextmanager
    def at_work(
        self,
        prompted: Sequence[PromptedProblem],
        sampling: parts.Sampling,
        reward: Reward,
        *,
        attempts: int,
        batch_invariant: bool = False,
        prints: Path | None = None,
    ) -> Iterator[tuple[Fleet, Examiner]]:
        """An engine with room for so many attempts at these problems, and the examiner that judges them."""
        max_length = self._longest(prompted) + sampling.max_new_tokens
        engine = choose_engine(self.model, max_length, num_attempts=attempts)
        names_stops = self.episodes is not None and self.episodes.names_stops
        with open_grading(reward, prints=prints, device=self.device, open_answer=open_answerer) as grading:
            self.try_grading(grading, [entry.problem for entry in prompted], reward, self.tokenizer)
            fleet = build_fleet(
                self.model,
                engine.model_copy(update={"batch_invariant": batch_invariant}),
                parts.Rollout(),
                max_length=max_length,
                vocabulary=self.tokenizer.token_bytes() if sampling.reads_text or names_stops else (),
            )
            yield fleet, Examiner(tokenizer=self.tokenizer, reward=reward, grading=grading)

    def _longest(self, prompted: Sequence[PromptedProblem]) -> int:
        return max([self.prompt_tokens, *(len(entry.ids) for entry in prompted)])

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn of an episode."""
        return () if self.episodes is None else self.episodes.stop

    def stream(self, prompted: Sequence[PromptedProblem], sampling: parts.Sampling) -> StreamKind:
        if self.episodes is None:
            return Stream
        return self.episodes.stream(self.tokenizer, self._longest(prompted) + sampling.max_new_tokens)


def evaluate_checkpoint(
    checkpoint: Path,
    problems: parts.Problems,
    sampling: parts.Sampling,
    *,
    num_samples: int,
    output: Path,
    grader: Function | Reward = "math",
    seed: int = 0,
    device: str = "auto",
    dtype: str = "auto",
) -> list[ProblemResult]:
    """A single evaluation: opened, evaluated, closed."""
    reward = choose_grader(grader)  # refused before the model is loaded
    with Evaluator(
        checkpoint, max_new_tokens=sampling.max_new_tokens, device=device, dtype=dtype
    ) as evaluator:
        return evaluator.evaluate(
            problems, sampling, num_samples=num_samples, output=output, grader=reward, seed=seed
        )
