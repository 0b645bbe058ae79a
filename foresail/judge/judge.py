"""The code judge: runs a program against its tests, each in a sandbox of its own, and says what came of it.

    judge(Program(source="print(int(input()) * 2)"), [StdinTest(input="2", output="4")]) -> [correct]

The program's own failures (a wrong answer, an exception, too much time, memory or output) are `wrong` and score 0.
A sandbox that breaks down twice is `crashed`, a test that cannot be used `ungradable`: those say nothing of the
program. `foresail.judge.sandbox` holds how programs are confined; start with its `namespaces`.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar, get_args

from foresail.judge.programs.program import Language, Limits, Program, StdinTest, Test
from foresail.judge.sandbox.build import NotCompiled, as_source, build, check_compiler
from foresail.judge.sandbox.isolation import start, start_strongest
from foresail.judge.sandbox.trial import run_test, wrong
from foresail.judge.sandbox.worker import JudgeWorker, WorkerDied
from foresail.records import Verdict

Result = TypeVar("Result")
DEFAULT_LIMITS = Limits()
FEW_TESTS = 3  # tests for which a process that compiles beforehand costs more than it saves
LANGUAGES = get_args(Language)
RETRY_SECONDS = (0.0, 0.1, 0.5)  # seconds after each start that failed


class Judge:
    """Judges from any number of threads, `workers` tests at a time.

    `isolation`: "namespaces", "landlock", "bubblewrap", or None for the strongest that holds here; without one the
    judge refuses to start. "none" confines nothing. `packages` are installed packages that programs may import
    beside the standard library, such as ("numpy",).
    """

    def __init__(
        self, *, isolation: str | None = None, workers: int = 1, packages: Sequence[str] = ()
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        self.workers = workers
        self.packages = find_packages(packages)
        self.level, first = start_strongest(isolation, self.packages)
        self.isolation = first.isolation  # in words: "namespaces+landlock+seccomp"
        self.idle = [first]
        self.closed = False
        self.make_locks()
        JUDGES.add(self)

    def make_locks(self) -> None:
        self.lock = threading.Lock()
        self.free = threading.Semaphore(self.workers)  # as many tests at a time as there are workers

    # Judging.

    def judge(
        self,
        program: Program,
        tests: Sequence[Test],
        limits: Limits = DEFAULT_LIMITS,
        *,
        stop_at_first_failure: bool = False,
    ) -> list[Verdict]:
        """One verdict per test, in order; fewer when stopped, the last of them being the failure."""
        check_tests(program, tests)
        try:
            few = program.language == "python" and len(tests) <= FEW_TESTS
            runnable = as_source(program) if few else self.attempt(lambda w: build(w, program, limits))
        except (NotCompiled, WorkerDied) as error:
            verdict = wrong(str(error)) if isinstance(error, NotCompiled) else crashed(error)
            return [verdict] * (1 if stop_at_first_failure else len(tests))
        verdicts: list[Verdict] = []
        with closing(runnable):
            for test in tests:
                run = partial(run_test, program=runnable, test=test, limits=limits)
                try:
                    verdicts.append(self.attempt(run))
                except WorkerDied as error:
                    verdicts.append(crashed(error))
                if stop_at_first_failure and verdicts[-1].status != "correct":
                    break
        return verdicts

    # Workers.

    def attempt(self, task: Callable[[JudgeWorker], Result]) -> Result:
        """Again with a fresh worker if the first one dies, or if for a moment there are no descriptors or no memory
        to start one: that says nothing of the program."""
        for pause in RETRY_SECONDS:
            try:
                return self.with_worker(task)
            except WorkerDied:
                break
            except OSError:
                time.sleep(pause)
        return self.with_worker(task)

    def with_worker(self, task: Callable[[JudgeWorker], Result]) -> Result:
        worker = self.lend()
        try:
            result = task(worker)
        except NotCompiled:
            self.take_back(worker)
            raise
        except BaseException:  # a worker that was interrupted may still be busy
            self.take_back(None)
            worker.close()
            raise
        self.take_back(worker)
        return result

    def lend(self) -> JudgeWorker:
        self.free.acquire()
        try:
            with self.lock:
                if self.closed:
                    raise ValueError("this judge is closed")
                if self.idle:
                    return self.idle.pop()
            return start(self.level, self.packages)
        except BaseException:
            self.free.release()
            raise

    def take_back(self, worker: JudgeWorker | None) -> None:
        with self.lock:
            if worker is not None and not self.closed:
                self.idle.append(worker)
                worker = None
        if worker is not None:
            worker.close()
        self.free.release()

    def close(self) -> None:
        """Ends the workers. A test that is running in another thread gets its verdict first."""
        with self.lock:
            self.closed = True
            idle, self.idle = self.idle, []
        for worker in idle:
            worker.close()

    def forget(self) -> None:
        """In a fork of this process: the workers stay the original's, this one starts its own."""
        self.idle = []
        self.make_locks()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_tests(program: Program, tests: Sequence[Test]) -> None:
    if not tests:
        raise ValueError("no tests: a program without tests cannot be judged")
    if program.language not in LANGUAGES:
        raise ValueError(f"language {program.language!r} is unknown; use one of {', '.join(LANGUAGES)}")
    if program.language == "cpp":
        check_compiler()
        if not all(isinstance(test, StdinTest) for test in tests):
            raise ValueError("C++ programs are tested by standard input and output only: use StdinTest")


def crashed(error: WorkerDied) -> Verdict:
    return Verdict(status="crashed", score=0.0, detail=str(error))


def find_packages(names: Sequence[str]) -> tuple[Path, ...]:
    """The folders of installed packages, with the shared libraries that wheels keep beside them."""
    folders: list[Path] = []
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise ValueError(f"package {name!r} is not installed; programs cannot be allowed to import it")
        folder = Path(spec.submodule_search_locations[0])
        libraries = folder.with_name(f"{name}.libs")
        folders += [folder, libraries] if libraries.exists() else [folder]
    return tuple(folders)


# One judge for everybody who does not want their own.

JUDGES: weakref.WeakSet[Judge] = weakref.WeakSet()
SHARED: dict[str | None, Judge] = {}
SHARED_LOCK = threading.Lock()


def judge(
    program: Program,
    tests: Sequence[Test],
    limits: Limits = DEFAULT_LIMITS,
    isolation: str | None = None,
    *,
    stop_at_first_failure: bool = False,
) -> list[Verdict]:
    """One verdict per test, by a judge that is started on first use and kept, with a worker per processor."""
    return shared_judge(isolation).judge(program, tests, limits, stop_at_first_failure=stop_at_first_failure)


def shared_judge(isolation: str | None = None) -> Judge:
    with SHARED_LOCK:
        if isolation not in SHARED:
            SHARED[isolation] = Judge(isolation=isolation, workers=os.cpu_count() or 1)
        return SHARED[isolation]


def close_shared() -> None:
    while SHARED:
        SHARED.popitem()[1].close()


def forget_workers() -> None:
    global SHARED_LOCK
    SHARED_LOCK = threading.Lock()
    for each in list(JUDGES):
        each.forget()


atexit.register(close_shared)
os.register_at_fork(after_in_child=forget_workers)
