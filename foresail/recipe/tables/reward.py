"""The table [reward]: the grader, the rewards for its verdicts, and further terms, [[reward.terms]]."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from foresail.recipe.checkpoint_path import CheckpointPath
from foresail.recipe.keys import NamesNone
from foresail.recipe.reward_function import Function, name_of
from foresail.recipe.tables.judge import JudgeReward
from foresail.recipe.tables.part import Part
from foresail.user_code import split_name

GRADERS = ("math", "exact", "qa", "code", "structured")
NO_GRADER = "none"  # of a reward that has terms only
ENVIRONMENT = "environment"  # whose turns have rewards of their own: their sum is the score
MODEL = "model"  # a reward model, [reward.model]: its score
JUDGE = "judge"  # a language model, [reward.judge], asked for a verdict
NAMED = (*GRADERS, ENVIRONMENT, MODEL, JUDGE)  # all but functions of one's own
ANSWERLESS = (NO_GRADER, MODEL, JUDGE)  # for which a problem needs no answer
# graders that take less time than sending a response to another process, or no CPU time
QUICK = ("math", "exact", "qa", "structured", NO_GRADER, ENVIRONMENT, MODEL, JUDGE)


def check_function_name(grader: Any) -> Function:
    """A grader's name, as in a recipe, or a function, as a Python program may give it."""
    if not isinstance(grader, str) and not callable(grader):
        raise PydanticCustomError("string_type", "it must be text")
    return grader


GraderName = Annotated[Function, PlainValidator(check_function_name), NamesNone()]


class Code(Part):
    """How programs are judged, if the grader is `code`."""

    scheme: Literal["all", "strict", "soft"] = Field(
        "all",
        description="score of a program. all: 1 if it passes all tests, else 0; strict, soft: by the tests' levels "
        "of difficulty",
    )
    seconds: float = Field(10.0, gt=0, description="time limit of a test, in seconds")
    memory_mb: int = Field(512, gt=0, description="memory limit of a test, in MB")
    isolation: Literal["namespaces", "landlock", "bubblewrap", "none"] | None = Field(
        None, description="sandbox of programs; default: the strongest that works on this machine"
    )


class LearnedReward(Part):
    """The reward model, if a grader is `model`."""

    path: CheckpointPath = Field(
        description="folder of a reward model: a checkpoint or run of stage reward-model, or transformers'"
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="of its weights; auto: bfloat16 on CUDA, else float32"
    )
    batch_tokens: int = Field(16384, gt=0, description="tokens per batch of the reward model")
    mean: float = Field(0.0, description="subtracted from a score first")
    std: float = Field(1.0, gt=0, description="then the score is divided by this")
    clip: float | None = Field(
        None, gt=0, description="then the score is clipped to ± this; none: not clipped"
    )


class Term(Part):
    """A score that is added to the reward, with a metric of its own."""

    grader: GraderName = Field(
        description="file.py:function, module:function, math, exact, qa, code, structured, environment, model or "
        "judge"
    )
    weight: float = Field(1.0, description="factor on the score; below 0 it is a penalty")
    name: str | None = Field(None, description="name in metrics and rollouts; default: the function's")

    @property
    def label(self) -> str:
        return self.name or split_name(name_of(self.grader))[1]

    @property
    def own_function(self) -> bool:
        return self.grader not in NAMED

    @model_validator(mode="after")
    def check_term(self) -> Self:
        check_grader_name(self.grader)
        if not self.label.strip() or "/" in self.label:
            raise ValueError(f'"{self.label}" cannot be the name of a metric; choose one like brevity')
        return self


def check_grader_name(grader: Function) -> None:
    if grader in NAMED or not isinstance(grader, str):
        return
    place, colon, function = grader.rpartition(":")
    if not (colon and place and function.isidentifier()):
        near = get_close_matches(grader, NAMED, n=1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(GRADERS)}."
        raise ValueError(f'unknown grader "{grader}"; {hint} A function is named like rewards.py:score')


class Reward(Part):
    """From verdicts to rewards."""

    grader: GraderName = Field(
        "math",
        description="math, exact, qa, code, structured, or your own function (file.py:function); environment: the "
        "sum of its rewards for the turns; model: the score of [reward.model]; judge: the verdict of "
        "[reward.judge]; none: [[reward.terms]] only",
    )
    wrong: float = Field(0.0, le=0, description="reward of a wrong answer: 0 or -1")
    correct: float = Field(1.0, gt=0, description="reward of a right answer")
    accept: Literal["boxed", "stated", "any"] = Field(
        "stated",
        description="math: answers that count. boxed: in a box only; stated: also stated in words or after ####; "
        "any: also any last expression",
    )
    threshold: float | None = Field(
        None,
        description="your own function, environment: a response is right from this score on; default: 1, and "
        "scores outside -1 to 1 say nothing about right and wrong",
    )
    workers: int | None = Field(
        None,
        ge=0,
        description="grading processes; 0: grade in this process; default: 0 for math, exact, qa and structured, "
        "else one per core",
    )
    time_limit: float | None = Field(
        None,
        gt=0,
        description="time limit of a verdict in a grading process, in seconds; default: 60, for code an hour",
    )
    code: Code = Code()
    model: LearnedReward | None = Field(None, description="the reward model, where a grader is model")
    judge: JudgeReward | None = Field(None, description="the judge, where a grader is judge")
    overlong_buffer: int = Field(
        0, ge=0, description="overlong penalty: it grows over this many tokens before the limit; 0: off"
    )
    overlong_factor: float = Field(1.0, ge=0, description="overlong penalty at the limit")
    format_weight: float = Field(
        0.0, ge=0, description="penalty for a response without <think>…</think> and an answer; 0: off"
    )
    language_weight: float = Field(
        0.0, ge=0, description="penalty, times the share of letters outside the prompt's script; 0: off"
    )
    terms: tuple[Term, ...] = Field(
        (), strict=False, description="further rewards, added by their weights, [[reward.terms]]"
    )

    @property
    def own_function(self) -> bool:
        """Whether `grader` is a function: its scores are the rewards, as they are."""
        return self.grader not in (*NAMED, NO_GRADER)

    @property
    def has_scores(self) -> bool:
        """Whether rewards may be other than right or wrong."""
        return bool(self.terms) or self.own_function

    @property
    def is_empty(self) -> bool:
        """Whether there is no grader, so that every response has the same reward."""
        return self.grader == NO_GRADER and not self.terms

    @property
    def shapes(self) -> bool:
        """Whether penalties for length, format or language are set."""
        return bool(self.overlong_buffer or self.format_weight or self.language_weight)

    @property
    def num_parts(self) -> int:
        """How many rewards are added up."""
        return (self.grader != NO_GRADER) + sum(term.weight != 0 for term in self.terms) + self.shapes

    @property
    def asks_environment(self) -> bool:
        return ENVIRONMENT in (self.grader, *(term.grader for term in self.terms))

    @property
    def asks_model(self) -> bool:
        return self._asks(MODEL)

    @property
    def asks_judge(self) -> bool:
        return self._asks(JUDGE)

    def _asks(self, grader: str) -> bool:
        return grader in (self.grader, *(term.grader for term in self.terms))

    def without(self, name: str) -> Reward | None:
        """The reward without the reward model, or without the judge; None if nothing is left."""
        terms = tuple(term for term in self.terms if term.grader != name)
        grader = NO_GRADER if self.grader == name else self.grader
        if grader == NO_GRADER and not terms:
            return None
        return self.model_copy(update={"grader": grader, "terms": terms, name: None})

    @property
    def is_quick(self) -> bool:
        """Whether grading runs in the trainer's process by default."""
        graders = (self.grader, *(term.grader for term in self.terms))
        return all(grader in QUICK for grader in graders)

    @property
    def functions(self) -> dict[str, Function]:
        """All functions of the user, by their keys."""
        main = {"reward.grader": self.grader} if self.own_function else {}
        return main | {
            f"reward.terms#{number}.grader": term.grader
            for number, term in enumerate(self.terms, start=1)
            if term.own_function
        }

    @model_validator(mode="after")
    def check_grader(self) -> Self:
        if self.grader != NO_GRADER:
            check_grader_name(self.grader)
        if self.grader not in GRADERS and (self.wrong, self.correct) != (0.0, 1.0):
            gives = "a reward of terms" if self.grader == NO_GRADER else name_of(self.grader)
            raise ValueError(
                f"wrong and correct are the rewards for verdicts of {', '.join(GRADERS)}; {gives} gives "
                "rewards of its own, so remove them"
            )
        if self.asks_model and self.model is None:
            raise ValueError('grader "model" needs a reward model; add [reward.model] with path = "…"')
        if self.asks_judge and self.judge is None:
            raise ValueError(
                'grader "judge" needs a judge; add [reward.judge.answerer] with checkpoint = "…", or with '
                'endpoint = "…" and model = "…"'
            )
        for label, count in Counter(term.label for term in self.terms).items():
            if count > 1:
                raise ValueError(
                    f'{count} terms are named "{label}"; give each a name of its own with name = "…", in Python '
                    'by {"grader": …, "name": "…"}'
                )
        return self
