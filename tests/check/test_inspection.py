"""What is broken in data, tokenizer, template or reward is named before a model loads: a table of such inputs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tiny_world import write_lines

from foresail.check.inspection import Inspection, inspect_sources
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight

GOOD = [{"prompt": f"{a} +{b}", "answer": str((a + b) % 10)} for a in range(3) for b in range(3)]
CHATS = [{"prompt": "7 +5", "completion": "2"}, {"messages": [
    {"role": "user", "content": "7 +5"}, {"role": "assistant", "content": "2"}]}]  # fmt: skip
LONG = "7" + " +5" * 20
SHAPE = (
    "vocab_size = 64\nhidden_size = 24\nintermediate_size = 48\nnum_layers = 2\nnum_heads = 2\n"
    "num_kv_heads = 1\nhead_dim = 12\nmax_context = 32\n"
)
RL = (
    'stage = "rl"\nsteps = 2\nprompts_per_step = 4\nmax_prompt_tokens = 12\n[run]\ndevice = "cpu"\n'
    '[data]\nsource = "data.jsonl"\n[sampling]\nmax_new_tokens = 8\n'
    f'[model]\ntokenizer = "tokenizer"\n[model.shape]\n{SHAPE}'
)
SFT = (
    'stage = "sft"\nsteps = 2\ndata = "data.jsonl"\nmax_length = 24\n[run]\ndevice = "cpu"\n'
    f'[model]\ntokenizer = "tokenizer"\n[model.shape]\n{SHAPE}'
)


@pytest.fixture(autouse=True)
def folder(tiny_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_tokenizer, "tokenizer")


def see(text: str, *overrides: str) -> tuple[Inspection, tuple[str, ...]]:
    """What the inspect_sources finds, and all refusals, the preflight's among them."""
    Path("recipe.toml").write_text(text)
    # a process loads a function once, by its name: every test has a file of its own
    overrides = tuple(line.replace("=mine.py", f"={Path.cwd()}/mine.py") for line in overrides)
    found = preflight(load_recipe("recipe.toml", overrides))
    context = found.shape.max_context if found.shape else None
    seen = inspect_sources(found.recipe, max_context=context)
    return seen, (*found.refusals, *seen.refusals)


def write(rows: list[dict[str, object]]) -> Callable[[], object]:
    return lambda: write_lines(Path("data.jsonl"), rows)


def text(content: str, name: str = "data.jsonl") -> Callable[[], object]:
    return lambda: Path(name).write_text(content)


def score(body: str) -> Callable[[], object]:
    def make() -> None:
        write(GOOD)()
        Path("mine.py").write_text(
            f"def score(data_source, solution_str, ground_truth, extra_info=None):\n    {body}\n"
        )

    return make


def change_tokenizer(name: str, **changes: object) -> Callable[[], object]:
    def make() -> None:
        write(GOOD)()
        file = Path("tokenizer") / name
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return make


@dataclass(frozen=True, kw_only=True)
class Broken:
    said: str
    make: Callable[[], object]
    recipe: str = RL
    overrides: list[str] = field(default_factory=list)


OWN = ["reward.grader=mine.py:score", "reward.workers=0"]
BROKEN = {
    "no such file": Broken(make=lambda: None, said="data.source data.jsonl does not exist"),
    "an empty file": Broken(make=text(""), said="data.source data.jsonl is empty"),
    "a torn last line": Broken(
        make=text(json.dumps(GOOD[0]) + '\n{"prompt": "7 +'), said="data.jsonl:2: not JSON"
    ),
    "a line that is a list": Broken(
        make=text(json.dumps(GOOD[0]) + "\n[1]\n"), said="data.jsonl:2: expected an object with named columns"
    ),
    "bytes that are no text": Broken(
        make=lambda: Path("data.jsonl").write_bytes(json.dumps(GOOD[0]).encode() + b"\n\xff\xfe\n"),
        said="data.jsonl is not UTF-8 text",
    ),
    "no prompt column": Broken(
        make=write([{"qestion": "7 +5", "answer": "2"}]), said="no prompt column; found columns qestion, answer"
    ),
    "no answer column": Broken(
        make=write([{"prompt": "7 +5", "anser": "2"}]), said="no answer column; found columns prompt, anser"
    ),
    "an answer_key that is not there": Broken(
        make=write(GOOD), overrides=["data.answer_key=gold"], said="answer_key 'gold' is not there"
    ),
    "empty answers": Broken(
        make=write([*GOOD, {"prompt": "7 +5", "answer": ""}, {"prompt": "7 +4", "answer": None}]),
        said="2 of 11 problems have no answer: data.jsonl:10; data.jsonl:11",
    ),
    "an empty prompt": Broken(
        make=write([{"prompt": " ", "answer": "2"}]), said="data.jsonl:1: the prompt is empty"
    ),
    "a prompt that ends with the assistant": Broken(
        make=write([{"prompt": [{"role": "assistant", "content": "7"}], "answer": "2"}]),
        said="the prompt ends with a message of the assistant",
    ),
    "prompts that are too long": Broken(
        make=write([*GOOD, {"prompt": LONG, "answer": "2"}]),
        said="1 of 10 prompts are longer than max_prompt_tokens 12, the longest (data:9) has ",
    ),
    "only prompts that are too long": Broken(
        make=write([{"prompt": LONG, "answer": "2"}] * 5),
        overrides=["data.too_long=drop"],
        said="5 of 5 prompts are longer than max_prompt_tokens 12",
    ),
    "fewer problems than a step takes, after dropping": Broken(
        make=write([*GOOD[:3], {"prompt": LONG, "answer": "2"}]),
        overrides=["data.too_long=drop"],
        said="data.jsonl has 3 problems and a step needs prompts_per_step = 4",
    ),
    "worked examples that are not there": Broken(
        make=write(GOOD),
        overrides=["data.examples=chats.jsonl"],
        said="data.examples chats.jsonl does not exist",
    ),
    "a character without a token": Broken(
        make=write([*GOOD, {"prompt": "7 ÷ 5", "answer": "2"}]), said="the tokenizer has no token for"
    ),
    "a system message that the data has already": Broken(
        make=write([{"prompt": [{"role": role, "content": "7"} for role in ("system", "user")], "answer": "2"}]),
        overrides=["data.system=5"],
        said="brings its own system message",
    ),
    "a level that is none": Broken(
        make=write([{**row, "level": "hard"} for row in GOOD]),
        overrides=["data.difficulty_key=level"],
        said="'hard' is not a difficulty level",
    ),
    "held-out problems without answers": Broken(
        make=lambda: (write(GOOD)(), write_lines(Path("test.jsonl"), [{"prompt": "7 +5", "answer": ""}])),
        overrides=["eval.source=test.jsonl", "eval_every=1"],
        said="eval: 1 of 1 problems have no answer: test.jsonl:1",
    ),
    "answers that no grader can read": Broken(
        make=write([{"prompt": row["prompt"], "answer": "see the appendix for a proof"} for row in GOOD]),
        overrides=["reward.grader=code"],
        said="cannot be graded",
    ),
    "a reward that crashes": Broken(
        make=score("return {}['x']"),
        overrides=OWN,
        said="fails on the answer '\\\\boxed{0}' to data:0: crashed: KeyError: 'x' (mine.py:2)",
    ),
    "a reward that returns text": Broken(
        make=score("return 'good'"), overrides=OWN, said="crashed: ValueError: it returned 'good' of type str"
    ),
    "a reward that wants a column": Broken(
        make=lambda: (write(GOOD)(), Path("mine.py").write_text(
            "def score(completions, steps, **kwargs):\n    return [1.0]\n")),
        overrides=OWN,
        said="score (mine.py:1) wants the column steps, and data.source has answer",
    ),
    "a reward that imports what is not there": Broken(
        make=score("import no_such_module"),
        overrides=OWN,
        said="No module named 'no_such_module'",
    ),
    "a source whose own grader is not there": Broken(
        make=write(GOOD),
        overrides=["data.grader=nowhere.py:f"],
        said="data.grader nowhere.py:f: the file nowhere.py does not exist",
    ),
    "a tokenizer that is none": Broken(
        make=lambda: (write(GOOD)(), Path("tokenizer/tokenizer.json").write_text('{"model": {"vocab": {"a": 0}}}')),
        said="tokenizer.json is not a tokenizer definition",
    ),
    "a template that is no Jinja": Broken(
        make=change_tokenizer("tokenizer_config.json", chat_template="{% for m in messages %}"),
        said="tokenizer in tokenizer: ",
    ),
    "a template that refuses": Broken(
        make=change_tokenizer("tokenizer_config.json", chat_template="{{ raise_exception('never') }}"),
        said="never",
    ),
    "no end of turn": Broken(
        make=lambda: (change_tokenizer("tokenizer_config.json", eos_token="<nothing>")()),
        said="names '<nothing>', which tokenizer.json does not hold",
    ),
    "a conversation without an assistant": Broken(
        recipe=SFT,
        make=write([*CHATS, {"messages": [{"role": "user", "content": "7 +5"}]}]),
        said="data.jsonl:3: the conversation has no assistant message",
    ),
    "a conversation that begins with it": Broken(
        recipe=SFT,
        make=write([{"conversations": [{"from": "gpt", "value": "7"}, {"from": "human", "value": "5"}]}]),
        said="data.jsonl:1: the conversation begins with the assistant",
    ),
    "a speaker nobody knows": Broken(
        recipe=SFT,
        make=write([{"conversations": [{"from": "humn", "value": "7"}]}]),
        said="data.jsonl:1: conversations: unknown speaker 'humn'",
    ),
    "a completion that is empty": Broken(
        recipe=SFT,
        make=write([{"prompt": "7", "completion": ""}]),
        said="completion must be text that is not empty",
    ),
    "conversations that are too long": Broken(
        recipe=SFT,
        make=write([*CHATS, {"prompt": LONG, "completion": "2"}]),
        said="1 of 3 conversations are longer than max_length 24, the longest (conversation 3) has ",
    ),
    "a conversation with a character without a token": Broken(
        recipe=SFT,
        make=write([*CHATS, {"prompt": "7", "completion": "ß"}]),
        said="conversation 3 of data.jsonl: the tokenizer has no token for 'ß'",
    ),
    "an end of thinking without tokens": Broken(
        make=write(GOOD),
        overrides=["sampling.thinking_budget=3"],
        said="sampling.thinking_end: the tokenizer has no token for",
    ),
    "a hint without tokens": Broken(
        make=write(GOOD),
        overrides=["credit.kind=pbsd", "credit.hint= ☃ {answer}"],
        said="credit.hint, which tells the teacher the answer: the tokenizer has no token for",
    ),
    "problems where conversations should be": Broken(
        recipe=SFT, make=write(GOOD), said="data.jsonl:1: no conversation; needs messages, prompt and completion"
    ),
}  # fmt: skip


def test_there_are_at_least_25_broken_inputs() -> None:
    assert len(BROKEN) >= 25


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_input_is_named(name: str) -> None:
    broken = BROKEN[name]
    broken.make()
    _, refusals = see(broken.recipe, *broken.overrides)
    assert any(broken.said in line for line in refusals), refusals
    assert len(refusals) == len(set(refusals)) <= 2, refusals


@pytest.mark.parametrize(("recipe", "rows"), [(RL, GOOD), (SFT, CHATS)])
def test_what_is_sound_is_not_refused(recipe: str, rows: list[dict[str, object]]) -> None:
    write(rows)()
    seen, refusals = see(recipe)
    assert refusals == () and seen.warnings == () and len(seen.notes) >= 2


def test_what_was_seen_is_told() -> None:
    write(GOOD)()
    notes = see(RL)[0].notes
    assert notes[1].startswith("data: 9 problems of data, prompts of ") and notes[1].endswith(" tokens")
    assert notes[2] == "data: 3 gold answers right, 3 wrong ones not (math)"


def test_what_to_set_for_long_prompts_knows_the_context() -> None:
    write([*GOOD, {"prompt": LONG, "answer": "2"}])()
    (_, (line,)) = see(RL)
    longest = int(line.partition("has ")[2].split()[0])
    assert longest > 32 and "; use a model with a longer context than 32 tokens, or leave them out" in line
    write([*GOOD, {"prompt": "7" + " +5" * 5, "answer": "2"}])()
    (_, (line,)) = see(RL, "max_prompt_tokens=8")
    longest = int(line.partition("has ")[2].split()[0])
    assert f'set max_prompt_tokens = {longest}, or leave them out: data.too_long = "drop"' in line
    (_, (line,)) = see(RL, "max_prompt_tokens=8", "sampling.max_new_tokens=24")
    assert f"set max_prompt_tokens = {longest} and sampling.max_new_tokens = {32 - longest}" in line


def test_dropping_is_a_warning() -> None:
    write([*GOOD, {"prompt": LONG, "answer": "2"}])()
    seen, refusals = see(RL, "data.too_long=drop")
    assert refusals == () and len(seen.warnings) == 1 and "they are left out" in seen.warnings[0]
    write([*CHATS, {"prompt": LONG, "completion": "2"}])()
    seen, refusals = see(SFT, "data.too_long=drop")
    assert refusals == () and "1 of 3 conversations" in seen.warnings[0]


def test_some_answers_that_cannot_be_graded_are_a_warning() -> None:
    write([*GOOD[:8], {"prompt": "7 +5", "answer": "$$"}])()
    seen, refusals = see(RL)
    assert refusals == () and "1 of 3 gold answers are not right to the grader math: '$$'" in seen.warnings[0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 0.5", "gives right answers no more than wrong ones (0.5 and 0.5)"),
        ("return None", "gave None to every answer"),
        ("return float(solution_str == '<answer>' + ground_truth + '</answer>')", None),
        ("return len(solution_str) / 100", None),
    ],
)
def test_an_own_reward_is_doubted_only_where_it_tells_nothing_apart(body: str, said: str | None) -> None:
    score(body)()
    seen, refusals = see(RL, *OWN)
    assert refusals == ()
    assert seen.warnings == () if said is None else said in seen.warnings[0]


def test_programs_are_run_against_their_own_solutions() -> None:
    shutil.rmtree("tokenizer")  # the tiny one knows digits only
    seen, _ = see(RL, "data.source=programs:count=4", "reward.grader=code")
    assert seen.notes == ("data: 3 gold answers right, 3 wrong ones not (code)",) and seen.refusals == ()


def test_short_answers_are_tried_as_their_grader_wants_them() -> None:
    shutil.rmtree("tokenizer")  # the tiny one knows digits only
    seen, _ = see(RL, "data.source=multi-hop:count=4", "reward.grader=qa")
    assert seen.notes == ("data: 3 gold answers right, 3 wrong ones not (qa)",) and seen.refusals == ()


def test_an_own_reward_is_called_as_in_a_run() -> None:
    """With token ids, which TRL's functions may count."""
    write(GOOD)()
    Path("mine.py").write_text(
        "def score(prompts, completions, completion_ids, answer, **kwargs):\n"
        "    assert len(completion_ids[0]) >= 1 and prompts[0]\n"
        "    return [float(pair[0] == pair[1]) for pair in zip(completions, answer)]\n"
    )
    seen, refusals = see(RL, *OWN)
    assert refusals == () and seen.notes[-1].endswith("gives right answers up to 1, wrong ones up to 0")


def test_sources_are_named_by_their_number() -> None:
    two = RL.replace(
        '[data]\nsource = "data.jsonl"', '[[data]]\nsource = "a.jsonl"\n[[data]]\nsource = "b.jsonl"'
    )
    write_lines(Path("a.jsonl"), GOOD)
    write_lines(Path("b.jsonl"), [{"prompt": "7", "answer": ""}])
    assert see(two)[1] == (
        "data#2: 1 of 1 problems have no answer: b.jsonl:1; fill them in or delete these rows",
    )


def test_a_large_file_is_left_to_the_run() -> None:
    text('{"prompt": "7 +5"}\n')()
    Path("recipe.toml").write_text(RL)
    assert inspect_sources(load_recipe("recipe.toml"), largest=5).refusals == ()
    assert len(inspect_sources(load_recipe("recipe.toml"), largest=500).refusals) == 1


def test_looking_imports_no_torch() -> None:
    write(GOOD)()
    Path("recipe.toml").write_text(RL)
    code = (
        "import sys; from foresail.check.inspection import inspect_sources; "
        "from foresail.recipe.reading.load import load_recipe; "
        "report = inspect_sources(load_recipe('recipe.toml')); "
        "assert report.refusals == () and len(report.notes) == 3; assert 'torch' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(Path(__file__).parents[2])}
    )


def test_columns_that_a_program_is_shown_are_there_and_hold_no_answer() -> None:
    rows = [{**row, "task": "x", "info": {"place": "y", "aliases": [row["answer"]]}} for row in GOOD]
    write(rows)()
    Path("agent.py").write_text("def run(agent): ...\n")

    def look_at(*columns: str) -> Inspection:
        named = ", ".join(f'"{column}"' for column in columns)
        return see(f'{RL}[environment]\nprogram = "agent.py:run"\ncolumns = [{named}]\n')[0]

    for honest in ((), ("task",), ("info.place", "task")):
        assert not look_at(*honest).refusals and not look_at(*honest).warnings
    for absent in ("tusk", "info.plaice", "task.deeper"):
        (said,) = look_at("task", absent).refusals
        assert said == f"environment.columns: data has no column {absent}; it has answer, info, task"
    for telling in ("info", "info.aliases", "answer"):
        (said,) = look_at(telling).warnings
        assert said.startswith(
            f"environment.columns shows programs {telling}, which holds the answer in 9 of 9"
        )
