"""What a code judge is given: a program, the tests it must pass, and what it may use up.

A test never travels whole to the process that runs model code: the program sees inputs and calls, while
expected outputs stay with the judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Language = Literal["python", "cpp"]


@dataclass(frozen=True, kw_only=True)
class Program:
    """Source text as a model wrote it, fences already taken off."""

    source: str
    language: Language = "python"


@dataclass(frozen=True, kw_only=True)
class OutputComparison:
    """How an output is compared with the expected one.

    `bytes`: the same bytes. `tokens`: the same words, whatever the white space between them.
    `numbers`: as `tokens`, but words that are numbers may differ by `relative` or `absolute`.
    `checker`: a trusted script decides; see `foresail.judge.programs.compare`.
    """

    mode: Literal["bytes", "tokens", "numbers", "checker"] = "tokens"
    relative: float = 1e-6
    absolute: float = 1e-9
    checker: str | None = None


@dataclass(frozen=True, kw_only=True)
class StdinTest:
    """The program reads `input` and must print `output`."""

    input: str
    output: str
    comparison: OutputComparison = OutputComparison()


@dataclass(frozen=True, kw_only=True)
class CallTest:
    """`function(*arguments, **keywords)` must return `expected`. `Solution().twoSum` names a method.

    A list equals a tuple of the same items, since most tests come from JSON, which has no tuples; with `strict` it
    does not, as by `==`.
    """

    function: str
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    relative: float = 0.0
    absolute: float = 0.0
    strict: bool = False


@dataclass(frozen=True, kw_only=True)
class AssertTest:
    """A trusted script that calls the program's functions and raises unless it likes what they return.

    HumanEval: `def check(candidate): …` followed by `check(add)`; MBPP: `assert add(1, 2) == 3`.
    """

    script: str
    # What it takes from the program; empty: the one name that neither it nor an installed module explains.
    names: tuple[str, ...] = ()


Test = StdinTest | CallTest | AssertTest


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one test may use. Time is the program's own: neither its start nor other processes count."""

    seconds: float = 10.0  # of processor time: a busy machine changes no verdict
    idle_seconds: float | None = None  # that it may wait, asleep or for input; None: `seconds` and 2 more
    memory_mb: int = 512
    output_bytes: int = 1 << 20
    file_mb: int = 16  # all files together
    files: int = 64
    processes: int = 1  # 1: no children; more only where namespaces can be had

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not value > 0:
                raise ValueError(f"limit {name} must be more than 0, not {value}")

    @property
    def max_idle_seconds(self) -> float:
        return self.seconds + 2 if self.idle_seconds is None else self.idle_seconds

    @property
    def wall_seconds(self) -> float:
        """The last limit, on the wall clock: for a program whose sleeps are too short to count as idle."""
        return 20 * self.seconds + self.max_idle_seconds + 10
