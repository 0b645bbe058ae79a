"""The tool `python`: runs code in the judge's sandbox; variables last through an episode.

    load_tool("python", packages=["numpy"])

The sandbox limits processor time, so a busy machine changes no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from textwrap import dedent

from foresail.agents.environment import EnvironmentBroken
from foresail.agents.tools.tool import Tool, ToolAnswer, tool_with_state
from foresail.judge.judge import Judge
from foresail.judge.programs.program import Limits
from foresail.judge.session import JudgeSession, SessionLimits

MAX_SESSIONS = 64  # at a time in one process; further episodes wait at their first call
NOTHING_SHOWN = "(no output: print what you want to see)"


@cache
def session_judge(packages: tuple[str, ...], isolation: str | None, sessions: int) -> Judge:
    """The sandbox of all episodes. Graders have another: a session holds a worker while the model thinks."""
    return Judge(isolation=isolation, workers=sessions, packages=packages)


class Python:
    """The Python of one episode."""

    limits_itself = True

    def __init__(self, judge: Judge, limits: SessionLimits) -> None:
        self.session = JudgeSession(judge, limits)

    def __call__(self, code: str) -> ToolAnswer:
        """Run Python code and return what it prints, and the value of its last expression. Variables are kept.

        code: Python 3, the standard library is there
        """
        try:
            output = self.session.run(dedent(code).strip("\n"))
        except Exception as error:  # of the sandbox: the code's own errors are in its output
            raise EnvironmentBroken(f"the sandbox of the tool python: {error}") from error
        return ToolAnswer(text=output or NOTHING_SHOWN, error=last_line(output) if is_error(output) else "")

    def close(self) -> None:
        self.session.close()


def is_error(output: str) -> bool:
    """A guess for the log: code may print text that looks like an error."""
    return (
        output.startswith("error: ")
        or "Traceback (most recent call last):" in output
        or "SyntaxError: " in output
    )


def last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2][:200]


def python_tool(
    *,
    packages: Sequence[str] = (),
    seconds: float = 5.0,
    session_seconds: float = 60.0,
    memory_mb: int = 512,
    sessions: int = MAX_SESSIONS,
    isolation: str | None = None,
) -> Tool:
    """The tool `python`; `seconds` limits a call's processor time, `session_seconds` an episode's."""
    judge = session_judge(tuple(packages), isolation, sessions)
    limits = SessionLimits(
        seconds=seconds,
        session=Limits(seconds=session_seconds, idle_seconds=seconds + 2, memory_mb=memory_mb),
    )
    return tool_with_state(Python, lambda: Python(judge, limits))
