"""The commands, from the outside: what they print, what they leave on disk, and what they do not import."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from tiny_world import HELD_OUT, MAX_NEW, rl_recipe, sft_recipe
from typer.testing import CliRunner

from foresail.cli import app
from foresail.evaluation.metrics import pass_at_k
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.stages.table import STAGES, recipe_type, stage_function
from foresail.recipe.tables.parts import Optimizer
from foresail.runlog.directory import RunDirectory

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "quickstart",
    "check",
    "sft",
    "rl",
    "resume",
    "eval",
    "grade",
    "show",
    "simulate",
    "import",
    "generate",
    "data",
)
ANSI = re.compile(r"\x1b")

# Runs the command as the console script does, then tells which modules that took.
REPORT = """
import sys
sys.argv = ["foresail", *sys.argv[1:]]
from foresail.cli import main
try:
    main()
finally:
    print("MODULES", *sorted(name for name in sys.modules if "." not in name))
"""


def imported_by(*words: str) -> tuple[str, set[str]]:
    """What a command prints in an interpreter of its own, and the libraries it imports on the way."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT, *words], cwd=ROOT, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    out, _, modules = done.stdout.rpartition("MODULES")
    return out, set(modules.split())


# Before anything heavy.


def test_every_stage_has_a_recipe_and_a_function() -> None:
    for stage, entry in STAGES.items():
        assert recipe_type(stage).model_fields["stage"].default == stage
        assert recipe_type(stage).__doc__ == entry.help
        assert callable(stage_function(stage))


@pytest.mark.parametrize("words", [("--help",), ("rl", "--help"), ("eval", "--help"), ("data", "--help")])
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    out, modules = imported_by(*words)
    assert modules >= {"foresail", "typer"}
    assert modules & {"torch", "numpy", "transformers", "tokenizers", "matplotlib"} == set()
    assert "Usage: foresail" in out
    if words == ("--help",):
        assert all(command in out for command in COMMANDS)


def test_grading_imports_no_torch() -> None:
    out, modules = imported_by("grade", r"\boxed{7}", "7")
    assert "status  correct" in out
    assert modules & {"torch", "tokenizers", "matplotlib", "rich.live"} == set()


def test_showing_a_timeline_imports_no_torch(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", "")
    run.append_timeline({"step": 1, "what": "rollout", "start": 0.0, "end": 2.0})
    out, modules = imported_by("show", str(run.path), "--timeline")
    assert "rollout  2.00 s" in out and "matplotlib" in modules
    assert modules & {"torch", "transformers", "tokenizers", "safetensors"} == set()


def test_check_imports_no_torch(tiny_checkpoint: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "rl.toml"
    recipe.write_text(to_toml(rl_recipe(tiny_checkpoint, tmp_path, updates_per_step=2)))
    out, modules = imported_by("check", str(recipe), "steps=5", "--quick")
    assert "pydantic" in modules and "problems of" not in out
    assert modules & {"torch", "numpy", "transformers", "tokenizers", "safetensors", "matplotlib"} == set()
    looked, modules = imported_by("check", str(recipe), "steps=5")
    assert "data: 200 problems of arithmetic, prompts of" in looked and "3 gold answers right" in looked
    assert modules & {"torch", "transformers", "safetensors", "matplotlib"} == set()
    assert "ready to run" in out
    for expected in ("run of 5 steps", "240", "4,800", "float32", "checkpoints/step_N"):
        assert expected in out  # 5 steps x 6 prompts x 8 samples, of at most 20 tokens each
    assert list(tmp_path.iterdir()) == [recipe]  # a check writes nothing


def test_check_ends_with_1_when_it_refuses(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "rl.toml").write_text(to_toml(rl_recipe(tiny_checkpoint, tmp_path)))
    refused = foresail.run("check", "rl.toml", "sampling.max_new_tokens=100", "model.path=nowhere")
    assert refused.code == 1
    assert "refused: model.path: no checkpoint directory nowhere" in refused.out
    assert "ready to run" not in refused.out and "Traceback" not in refused.err


def test_without_a_command_there_is_help(foresail: CommandLine) -> None:
    finished = foresail.run()
    assert "Usage: foresail" in finished.out + finished.err


# Stages.


@pytest.mark.parametrize("stage", ["rl", "sft"])
def test_piped_output_of_a_stage_is_plain_lines(
    foresail: CommandLine,
    tiny_checkpoint: Path,
    tiny_tokenizer: Path,
    tiny_conversations: Path,
    tmp_path: Path,
    stage: str,
) -> None:
    root = Path("runs")
    recipe = (
        rl_recipe(tiny_checkpoint, root)
        if stage == "rl"
        else sft_recipe(tiny_tokenizer, tiny_conversations, root, steps=2, optimizer=Optimizer(lr=1e-3))
    )
    (tmp_path / "recipe.toml").write_text(to_toml(recipe))
    finished = foresail.run(stage, "recipe.toml", "run.seed=7", FORCE_COLOR="1")
    assert finished.code == 0 and finished.err == ""
    assert not ANSI.search(finished.out) and "\r" not in finished.out
    lines = finished.out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(f"{stage} ")] == [
        [stage, "1/2"],
        [stage, "2/2"],
    ]
    assert lines[-1] == f"checkpoint: runs/{stage}/checkpoints/step_2"
    # the recipe that was saved holds the override, and is a recipe itself
    assert "seed = 7" in (tmp_path / "runs" / stage / "recipe.toml").read_text()
    again = foresail.run(stage, f"runs/{stage}/recipe.toml", "run.name=again")
    assert again.code == 0
    first, second = (
        tmp_path / "runs" / name / "checkpoints/step_2/model.safetensors" for name in (stage, "again")
    )
    assert first.read_bytes() == second.read_bytes()


# Evaluation.


@pytest.mark.parametrize(("options", "n"), [((), 8), (("--samples", 6), 6)])
def test_eval_writes_records_and_summary_and_prints_the_table(
    options: tuple[str | int, ...], n: int, foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    words = ("eval", tiny_checkpoint, "--data", HELD_OUT, "--max-new-tokens", MAX_NEW, "--output", "found")
    finished = foresail.run(*words, *options)
    assert finished.code == 0 and finished.err == ""
    assert finished.out.splitlines()[-1] == "records: found/records.jsonl"
    records = [json.loads(line) for line in (tmp_path / "found" / "records.jsonl").read_text().splitlines()]
    summary = json.loads((tmp_path / "found" / "summary.json").read_text())

    assert len(records) == summary["problems"] == 20
    for record in records:
        assert len(record["samples"]) == n
        for attempt in (record["greedy"], *record["samples"]):
            assert (
                attempt["status"] in ("correct", "wrong", "unparsable") and 0 < attempt["length"] <= MAX_NEW
            )
    right = [sum(sample["status"] == "correct" for sample in record["samples"]) for record in records]
    expected = {
        "greedy": sum(record["greedy"]["status"] == "correct" for record in records) / 20,
        f"mean@{n}": sum(right) / (20 * n),
        **{f"pass@{k}": sum(pass_at_k(n, count, k) for count in right) / 20 for k in (1, 2, 4, n)},
    }
    for name, value in expected.items():
        assert summary[name]["value"] == pytest.approx(value)
    assert 0 <= summary[f"maj@{n}"]["value"] <= summary[f"pass@{n}"]["value"]
    for name in (*expected, f"maj@{n}"):
        figure = summary[name]
        assert 0 <= figure["low"] <= figure["value"] <= figure["high"] <= 1
        row = next(line for line in finished.out.splitlines() if line.split()[:1] == [name])
        for share in (figure["value"], figure["low"], figure["high"]):
            assert f"{share:.1%}" in row
    assert not ANSI.search(finished.out)


def test_eval_gives_the_same_records_again_and_others_for_another_seed(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    common = ("eval", tiny_checkpoint, "--data", HELD_OUT, "--max-new-tokens", MAX_NEW)
    last_lines = [
        foresail.run(*common, "--output", folder, "--seed", seed).out.splitlines()[-1]
        for folder, seed in (("a", 4), ("a", 3), ("b", 3), ("c", 4))
    ]
    paths = [f"records: {folder}/records.jsonl" for folder in "aabc"]
    assert last_lines == [paths[0], f"{paths[1]} (replaced)", *paths[2:]]
    a, b, c = ((tmp_path / folder / "records.jsonl").read_text() for folder in "abc")
    assert a == b != c


def test_eval_options_reach_the_problems(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    words = ("--samples", 0, "--limit", 3, "--suffix", " +1", "--max-new-tokens", 4, "--grader", "exact")
    (tmp_path / "shown.jsonl").write_text('{"prompt": "7 +5", "completion": "2"}\n')
    finished = foresail.run("eval", tiny_checkpoint, "--data", HELD_OUT, *words, "--examples", "shown.jsonl")
    assert finished.code == 0, finished.err
    (folder,) = (tmp_path / "runs" / "eval").iterdir()
    assert finished.out.splitlines()[-1] == f"records: {folder.relative_to(tmp_path)}/records.jsonl"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["problems"] == 3 and summary["grader"] == "exact" and summary["data"]["suffix"] == " +1"
    assert summary["data"]["examples"] == "shown.jsonl"
    assert "greedy" in summary and not any(name.startswith(("mean@", "pass@", "maj@")) for name in summary)


def test_eval_reads_the_columns_it_is_told(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.jsonl").write_text('{"frage": "7 +5", "loesung": "2"}\n')
    words = ("eval", tiny_checkpoint, "--data", "own.jsonl", "--samples", 0, "--max-new-tokens", 4)
    lost = foresail.run(*words)
    assert lost.code == 1 and "prompt_key" in lost.err and "frage" in lost.err
    found = foresail.run(*words, "--prompt-key", "frage", "--answer-key", "loesung", "--output", "out")
    assert found.code == 0, found.err
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["problems"] == 1


# Looking at a run.


@pytest.mark.parametrize(
    ("words", "place", "advice"),
    [
        (("eval", "CHECKPOINT"), "evaluator.Evaluator", "nothing of it is kept"),
        (
            ("data", "grade-difficulty", "CHECKPOINT"),
            "difficulty.grade_difficulty",
            "the same command goes on",
        ),
    ],
)
def test_an_interrupt_is_answered_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], place: str, advice: str
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"foresail.evaluation.{place}", interrupted)
    stopped = CliRunner().invoke(app, [*words, "--data", "arithmetic:count=3"])
    assert stopped.exit_code == 130 and f"stopped at once; {advice}" in stopped.stderr


def test_an_interrupt_before_a_run_has_its_folder_promises_no_resume(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    def interrupted(recipe: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("foresail.train.stages.rl.run_rl", interrupted)
    recipe = tmp_path / "rl.toml"
    recipe.write_text(to_toml(rl_recipe(tiny_checkpoint, tmp_path)))
    stopped = CliRunner().invoke(app, ["rl", str(recipe)])
    assert stopped.exit_code == 130 and "stopped at once; nothing had begun" in stopped.stderr


def test_show_sums_up_a_finished_run(foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "rl.toml").write_text(to_toml(rl_recipe(tiny_checkpoint, Path("runs"), steps=3)))
    assert foresail.run("rl", "rl.toml").code == 0
    shown = foresail.run("show", "runs/rl")
    assert shown.code == 0 and shown.err == "" and not ANSI.search(shown.out)
    last = RunDirectory(tmp_path / "runs" / "rl").read_metrics()[-1]
    assert re.search(r"steps +3 *\n", shown.out)
    assert re.search(rf"accuracy +{last['rollout/accuracy']:.2f} *\n", shown.out)
    assert re.search(r"checkpoints +step_2, step_3 *\n", shown.out)
    assert (tmp_path / "runs/rl/curves.png").read_bytes().startswith(b"\x89PNG")


def test_show_sums_up_a_killed_run(foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "rl.toml").write_text(to_toml(rl_recipe(tiny_checkpoint, Path("runs"), steps=500)))
    run = RunDirectory(tmp_path / "runs" / "rl")
    running = foresail.start("rl", "rl.toml")
    running.until(lambda: len(run.read_metrics()) > 3)
    running.send(signal.SIGKILL)
    assert running.wait().code == -signal.SIGKILL
    with open(run.metrics.path, "ab") as file:
        file.write(b'{"step": 77, "half of a li')
    shown = foresail.run("show", "runs/rl")
    assert shown.code == 0, shown.err
    assert re.search(rf"steps +{run.read_metrics()[-1]['step']} *\n", shown.out)
    assert (run.path / "curves.png").exists()
    drawn = foresail.run("show", "runs/rl", "--timeline")
    assert drawn.code == 0, drawn.err
    assert (run.path / f"timeline_step_{run.read_timeline()[-1]['step']}.png").exists()


def test_show_draws_the_timeline_of_a_step(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "rl.toml").write_text(to_toml(rl_recipe(tiny_checkpoint, Path("runs"), steps=2)))
    assert foresail.run("rl", "rl.toml").code == 0
    for words, step in (((), 2), (("--step", 1), 1)):
        shown = foresail.run("show", "runs/rl", "--timeline", *words)
        assert shown.code == 0 and shown.err == "" and not ANSI.search(shown.out)
        assert shown.out.startswith(f"runs/rl, step {step}\n")
        assert re.search(r"rollout, engine +busy \d+%, .* rows on average, [\d,]+ tokens", shown.out)
        picture = tmp_path / f"runs/rl/timeline_step_{step}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
    missing = foresail.run("show", "runs/rl", "--timeline", "--step", 9)
    assert missing.code == 1 and "no step 9; steps there: 0 to 2" in missing.err
    alone = foresail.run("show", "runs/rl", "--step", 1)
    assert alone.code == 1 and "add --timeline" in alone.err


def test_show_takes_a_folder_of_runs(foresail: CommandLine, tiny_sft_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_sft_run, tmp_path / "runs" / "sft")
    shown = foresail.run("show", "runs")
    assert shown.code == 0, shown.err
    assert re.search(r"runs/sft\n +steps +60 *\n", shown.out)


# Generating.


def test_generate_answers_and_does_so_again(foresail: CommandLine, tiny_checkpoint: Path) -> None:
    words = ("generate", tiny_checkpoint, "7 +5 *3", "--max-new-tokens", MAX_NEW)
    answer = foresail.run(*words)
    assert answer.code == 0 and re.fullmatch(r"\\boxed\{\d\}\n", answer.out)
    assert foresail.run(*words).out == answer.out
    assert foresail.run(*words[:3]).out == answer.out  # without a limit: as long as the context allows
    drawn = {foresail.run(*words, "--temperature", 2, "--seed", seed).out for seed in range(4)}
    assert len(drawn) > 1


def test_the_installed_command_is_this_package() -> None:
    command = Path(sys.executable).with_name("foresail")
    if not command.exists():
        pytest.skip("the console script is not installed beside this interpreter")
    done = subprocess.run([command, "--help"], capture_output=True, text=True, cwd="/", check=True)
    assert "Usage: foresail" in done.stdout and all(command in done.stdout for command in COMMANDS)
