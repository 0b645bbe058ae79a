"""Runs a user's programs: each gets an endpoint's address, a key and a problem, and returns a result.

    async def run(agent):                                       # or a plain function: my_agent.py:run
        client = AsyncOpenAI(base_url=agent.base_url, api_key=agent.api_key)
        reply = await client.chat.completions.create(model=agent.model, messages=agent.messages)
        return reply.choices[0].message.content

A function runs in its own thread, a coroutine function in its own event loop there. A command, ["python",
"agent.py"], runs as a process with OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, the same with ANTHROPIC_, and
FORESAIL_PROBLEM, and its output is its result.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from foresail.agents.programs.columns import ShownColumns
from foresail.records import Problem
from foresail.user_code import load_user_code, split_name

MAX_PROGRAMS = 256  # programs; others wait until one has ended
LONGEST_OUTPUT = 1 << 16  # bytes of a command's output; of more only the end is read
LAST_WORDS = 300  # characters of a failed command's error


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A program's argument: the model's address and key, and the problem as `show_problem` makes it."""

    base_url: str
    api_key: str
    model: str
    problem: Problem

    @property
    def anthropic_url(self) -> str:
        """For Anthropic's clients, which add /v1 by themselves."""
        return self.base_url.removesuffix("/v1")

    @property
    def messages(self) -> list[dict[str, str]]:
        """The problem's prompt, as clients take it."""
        return [{"role": message.role, "content": message.content} for message in self.problem.prompt]


class ProgramFailed(Exception):
    """A program ended with an error."""


# The two kinds of programs.


class FunctionProgram:
    """A function, plain or async, of one argument: the Agent."""

    def __init__(self, function: Callable[[Agent], Any]) -> None:
        self.function = function

    def run(self, agent: Agent, job: ProgramJob) -> Any:
        result = self.function(agent)
        return asyncio.run(wait_for(result)) if inspect.isawaitable(result) else result

    def stop(self, job: ProgramJob) -> None:
        """A thread cannot be ended; its next request is refused, which ends most programs."""


async def wait_for(result: Awaitable[Any]) -> Any:
    return await result


class CommandProgram:
    """A command and its arguments, without a shell."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = [*command]

    def run(self, agent: Agent, job: ProgramJob) -> str | None:
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    env=os.environ | variables(agent),
                    start_new_session=True,
                )
            except OSError as error:
                raise ProgramFailed(f"{self.command[0]} cannot be started: {error.strerror}") from error
            with job.lock:
                job.process = process
            if job.is_over:
                self.stop(job)
            status = self.end(process, job)
            if status:
                raise ProgramFailed(f"exit status {status}: {last_words(errors) or last_words(output)}")
            return end_of(output).strip() or None

    def end(self, process: subprocess.Popen[bytes], job: ProgramJob) -> int:
        """Wait for its exit status, and kill whatever it left running."""
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its pid stays reserved until `wait`
        self.stop(job)
        with job.lock:
            job.process = None
            return process.wait()

    def stop(self, job: ProgramJob) -> None:
        with job.lock, suppress(OSError):
            if job.process is not None:
                os.killpg(job.process.pid, signal.SIGKILL)


def variables(agent: Agent) -> dict[str, str]:
    """A command's environment variables. The endpoint's address bypasses proxies."""
    proxied = [os.environ.get(name, "") for name in ("NO_PROXY", "no_proxy")]
    direct = ",".join(filter(None, ["127.0.0.1", "localhost", *proxied]))
    extra = agent.problem.extra
    problem = {"id": agent.problem.id, "prompt": agent.messages, "extra": extra}
    if isinstance(extra, ShownColumns):
        problem["hidden"] = sorted(extra.hidden)  # columns that environment.columns could show
    return {
        "OPENAI_BASE_URL": agent.base_url,
        "OPENAI_API_BASE": agent.base_url,
        "OPENAI_API_KEY": agent.api_key,
        "OPENAI_MODEL": agent.model,
        "ANTHROPIC_BASE_URL": agent.anthropic_url,
        "ANTHROPIC_API_KEY": agent.api_key,
        "ANTHROPIC_MODEL": agent.model,
        "FORESAIL_PROBLEM": json.dumps(problem, default=str),
        "NO_PROXY": direct,
        "no_proxy": direct,
    }


def end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LONGEST_OUTPUT))
    return file.read().decode(errors="replace")


def last_words(file: IO[bytes]) -> str:
    lines = end_of(file).strip().splitlines()
    return lines[-1][:LAST_WORDS] if lines else ""


Program = FunctionProgram | CommandProgram


def load_program(program: str | Sequence[str]) -> Program:
    """load_program("my_agent.py:run"), load_program(["python", "agent.py"])."""
    if not isinstance(program, str):
        return CommandProgram(program)
    place, name = split_name(program)
    function = load_user_code(program)
    if not callable(function):
        raise ValueError(f"environment.program {program}: there is no function {name} in {place}")
    return FunctionProgram(function)


# Many programs at the same time.


@dataclass(eq=False, repr=False)
class ProgramJob:
    """One running program. `on_end` gets its result or error, unless the job was stopped before."""

    agent: Agent
    on_end: Callable[[Any, BaseException | None], None]
    since: float | None = None  # `time.monotonic` of its start
    is_over: bool = False
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.lock = threading.Lock()


class Programs:
    """Starts and stops programs; one that does not stop keeps its thread but no longer counts as running."""

    def __init__(self, program: Program, max_running: int = MAX_PROGRAMS) -> None:
        self.program, self.max_running = program, max_running
        self.lock = threading.Lock()
        self.waiting: deque[ProgramJob] = deque()
        self.running: set[ProgramJob] = set()

    def start(self, agent: Agent, on_end: Callable[[Any, BaseException | None], None]) -> ProgramJob:
        job = ProgramJob(agent, on_end)
        with self.lock:
            self.waiting.append(job)
        self._fill()
        return job

    def stop(self, job: ProgramJob) -> None:
        with self.lock:
            is_new, job.is_over = not job.is_over and job not in self.running, True
            self.running.discard(job)
            if is_new:
                self.waiting.remove(job)
        self.program.stop(job)
        self._fill()

    def close(self) -> None:
        with self.lock:
            left = [*self.waiting, *self.running]
        for job in left:
            self.stop(job)

    def _fill(self) -> None:
        with self.lock:
            while self.waiting and len(self.running) < self.max_running:
                job = self.waiting.popleft()
                self.running.add(job)
                threading.Thread(target=self._run, args=(job,), name="program", daemon=True).start()

    def _run(self, job: ProgramJob) -> None:
        job.since = time.monotonic()
        result, error = None, None
        try:
            result = self.program.run(job.agent, job)
        except BaseException as raised:  # `exit()` in a program ends the program, nothing else
            error = raised
        with self.lock:
            self.running.discard(job)
            stopped = job.is_over
            job.is_over = True
        if not stopped:
            job.on_end(result, error)
        self._fill()
