"""Programs as functions and as commands: what they are told, how they end, and that they end."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from small_programs import play

from foresail.agents.programs.columns import show_problem
from foresail.agents.programs.program import (
    Agent,
    CommandProgram,
    FunctionProgram,
    Programs,
    load_program,
)
from foresail.records import Message, Problem

PROBLEM = Problem(
    id="7",
    prompt=(Message(role="user", content="6*7?"),),
    answer="42",
    extra={
        "answer": "42",
        "repo": "x",
        "note": "42",
        "extra_info": {"ground_truth": 42, "index": 3},
        "level": 4,
    },
)
AGENT = Agent(
    base_url="http://127.0.0.1:1/v1",
    api_key="sk-1",
    model="policy",
    problem=show_problem(PROBLEM, ("repo", "extra_info.index")),
)


class Told:
    """What a job told."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.said: Any = None
        self.error: BaseException | None = None

    def __call__(self, said: Any, error: BaseException | None) -> None:
        self.said, self.error = said, error
        self.there.set()

    def wait(self) -> Any:
        assert self.there.wait(60)
        if self.error is not None:
            raise self.error
        return self.said


def run(program: Any) -> Any:
    told = Told()
    with closing(Programs(program)) as programs:
        programs.start(AGENT, told)
        return told.wait()


def command(source: str) -> CommandProgram:
    return CommandProgram([sys.executable, "-c", textwrap.dedent(source)])


def test_a_program_is_not_told_the_answer() -> None:
    assert AGENT.messages == [{"role": "user", "content": "6*7?"}]
    assert AGENT.problem.answer == "" and "42" not in json.dumps(dict(AGENT.problem.extra))
    assert AGENT.problem.extra == {"repo": "x", "extra_info": {"index": 3}}
    assert PROBLEM.extra["answer"] == "42"


def test_functions_plain_and_asynchronous(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def plain(agent): return agent.api_key\nasync def slow(agent): return agent.model\nNUMBER = 3\n"
    )
    assert run(load_program(f"{tmp_path}/own.py:plain")) == "sk-1"
    assert run(load_program(f"{tmp_path}/own.py:slow")) == "policy"
    for name in ("NUMBER", "absent"):
        with pytest.raises(ValueError, match=f"there is no function {name}"):
            load_program(f"{tmp_path}/own.py:{name}")


def test_a_command_is_told_by_its_environment_and_says_what_it_prints() -> None:
    said = run(
        command("""
            import json, os
            problem = json.loads(os.environ["FORESAIL_PROBLEM"])
            names = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL")
            assert problem["extra"] == {"repo": "x", "extra_info": {"index": 3}}
            assert problem["hidden"] == ["answer", "level", "note"]
            print(problem["prompt"][0]["content"], problem["id"], *(os.environ[name] for name in names))
            assert "127.0.0.1" in os.environ["NO_PROXY"]
        """)
    )
    assert said == "6*7? 7 http://127.0.0.1:1/v1 sk-1 policy"
    assert run(command("pass")) is None
    assert len(run(command("print('a' * 1_000_000)"))) < 70_000


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (command("import sys; print('half', file=sys.stderr); sys.exit(3)"), "exit status 3: half"),
        (command("raise KeyError('x')"), "exit status 1: KeyError: 'x'"),
        (command("import os; os.kill(os.getpid(), 9)"), "exit status -9"),
        (CommandProgram(["no-such-program"]), "no-such-program cannot be started: No such file"),
        (FunctionProgram(lambda agent: 1 / 0), "division by zero"),
        (FunctionProgram(lambda agent: sys.exit("enough")), "enough"),
    ],
)
def test_failures_say_what_went_wrong(program: Any, words: str) -> None:
    with pytest.raises(BaseException, match=words):
        run(program)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("ends_itself", [True, False])
def test_a_command_ends_with_all_that_it_started(tmp_path: Path, ends_itself: bool) -> None:
    written = tmp_path / "processes"
    program = command(f"""
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open({str(written)!r} + ".new", "w") as file:
            file.write(f"{{os.getpid()}} {{child.pid}}")
        os.rename({str(written)!r} + ".new", {str(written)!r})
        time.sleep(0 if {ends_itself} else 600)
    """)
    told = Told()
    with closing(Programs(program)) as programs:
        job = programs.start(AGENT, told)
        while not written.exists():
            time.sleep(0.01)
        if ends_itself:
            told.wait()
        programs.stop(job)
        while any(is_alive(int(number)) for number in written.read_text().split()):
            time.sleep(0.01)
        assert told.there.is_set() == ends_itself
        assert job.process is None or not ends_itself


def test_only_so_many_run_at_once_and_the_stuck_hold_up_nobody() -> None:
    free, running, most, lock = threading.Event(), [0], [0], threading.Lock()

    def work(agent: Agent) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        if agent.api_key == "stuck":
            free.wait(60)
        time.sleep(0.001)
        with lock:
            running[0] -= 1

    stuck = Agent(base_url="", api_key="stuck", model="", problem=PROBLEM)
    with closing(Programs(FunctionProgram(work), max_running=3)) as programs:
        jobs = [programs.start(stuck, Told()) for _ in range(3)]
        told = [Told() for _ in range(20)]
        waiting = [programs.start(AGENT, entry) for entry in told]
        programs.stop(waiting.pop())
        assert not any(entry.there.is_set() for entry in told)
        for job in jobs:
            programs.stop(job)
        for entry in told[:-1]:
            entry.wait()
        assert most[0] <= 6 and not told[-1].there.is_set()
    free.set()


def test_a_process_plays_an_episode() -> None:
    program = command("""
        import json, os, urllib.request
        def ask(messages):
            request = urllib.request.Request(
                os.environ["OPENAI_BASE_URL"] + "/chat/completions",
                json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages, "max_tokens": 3}).encode(),
                {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
            return json.load(urllib.request.urlopen(request))["choices"][0]["message"]
        messages = json.loads(os.environ["FORESAIL_PROBLEM"])["prompt"]
        messages += [ask(messages), {"role": "user", "content": "1"}]
        ask(messages)
        print("42")
    """)
    for group in play(program, count=1, num_samples=2).values():
        assert [sample.outcome for sample in group.samples] == ["42", "42"]
        assert [sample.turns[-1] for sample in group.samples] == [1, 1]
    assert os.environ.get("FORESAIL_PROBLEM") is None
