"""The run directory: its layout, and what is left of it after kills, rewinds and full disks."""

import errno
import gzip
import math
import os

import pytest

from foresail.runlog.atomic import replacing_directory
from foresail.runlog.directory import RunDirectory

ROWS = [{"problem": "1+1", "response": "2 ✓", "logprobs": [-0.5, -math.inf]}, {"problem": "2+2"}]


def make_run(tmp_path, steps=3):
    run = RunDirectory.create(tmp_path / "runs" / "demo", 'stage = "rl"\n')
    for step in range(1, steps + 1):
        run.append_metrics(step, {"critic/score/mean": step / 10})
        run.append_timeline({"step": step, "what": "rollout"}, {"step": step, "what": "update"})
        run.write_rollouts(step, [{"step": step}])
        with replacing_directory(run.checkpoint_path(step)) as aside:
            (aside / "weights").write_text(str(step))
    return run


def test_layout_is_that_of_the_architecture_page(tmp_path):
    run = make_run(tmp_path, steps=1)
    files = sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*") if path.is_file())
    assert files == [
        "checkpoints/step_1/weights",
        "metrics.jsonl",
        "recipe.toml",
        "rollouts/step_000001.jsonl.gz",
        "timeline.jsonl",
    ]
    assert run.recipe_path.read_text() == 'stage = "rl"\n'


def test_create_refuses_a_folder_with_a_run_and_open_one_without(tmp_path):
    run = make_run(tmp_path)
    with pytest.raises(FileExistsError, match=r"already holds a run; go on.*foresail resume .*run\.name"):
        RunDirectory.create(run.path, "")
    assert RunDirectory.open(run.path).read_metrics() == run.read_metrics()
    with pytest.raises(FileNotFoundError, match="is no run"):
        RunDirectory.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        RunDirectory.open(tmp_path / "nowhere")


def test_create_takes_a_folder_that_a_killed_create_left(tmp_path):
    (tmp_path / "demo" / "rollouts").mkdir(parents=True)
    (tmp_path / "demo" / ".tmp-1-recipe.toml").write_text("half")
    run = RunDirectory.create(tmp_path / "demo", "whole")
    assert sorted(path.name for path in run.path.iterdir()) == ["checkpoints", "recipe.toml"]


def test_create_clears_a_run_that_never_began_and_nothing_else(tmp_path):
    false_start = RunDirectory.create(tmp_path / "demo", "mistaken")
    false_start.append_metrics(0, {"selftest/logprob_diff": 1e-6})
    false_start.append_timeline({"step": 1, "what": "rollout"})
    false_start.write_rollouts(1, ROWS)
    (false_start.path / "tensorboard").mkdir()
    (false_start.path / "tensorboard" / "events").touch()
    (false_start.path / "reference.safetensors").touch()  # of a model that may be another by now
    (false_start.path / "notes.txt").write_text("mine")
    run = RunDirectory.create(tmp_path / "demo", "mended")
    assert sorted(path.name for path in run.path.iterdir()) == ["checkpoints", "notes.txt", "recipe.toml"]
    assert run.recipe_path.read_text() == "mended"


@pytest.mark.parametrize("sign", ["metrics", "checkpoint"])
def test_create_keeps_a_run_that_has_begun(tmp_path, sign):
    run = RunDirectory.create(tmp_path / "demo", "first")
    assert not run.has_begun()
    if sign == "metrics":
        run.append_metrics(1, {"train/loss": 1.0})
    else:
        run.checkpoint_path(0).mkdir()
    with pytest.raises(FileExistsError, match="already holds a run"):
        RunDirectory.create(tmp_path / "demo", "second")
    assert run.recipe_path.read_text() == "first"


def test_metrics_are_one_line_a_step(tmp_path):
    run = RunDirectory.create(tmp_path / "demo", "")
    run.append_metrics(1, {"actor/entropy": 0.1 + 0.2, "actor/grad_norm": math.nan, "count": 3})
    assert run.metrics.path.read_text() == (
        '{"step":1,"actor/entropy":0.30000000000000004,"actor/grad_norm":null,"count":3}\n'
    )


def test_metrics_that_are_not_plain_are_refused_by_name(tmp_path):
    run = RunDirectory.create(tmp_path / "demo", "")
    with pytest.raises(TypeError, match="metric actor/entropy is a list"):
        run.append_metrics(1, {"actor/entropy": [1.0]})
    with pytest.raises(ValueError, match="step 1 say step 2"):
        run.append_metrics(1, {"step": 2})
    assert run.read_metrics() == []


def test_timeline_events_need_a_step(tmp_path):
    run = RunDirectory.create(tmp_path / "demo", "")
    with pytest.raises(ValueError, match="give the step"):
        run.append_timeline({"step": 1}, {"what": "rollout"})
    assert run.read_timeline() == []


def test_rollouts_come_back_and_are_the_same_bytes_each_time(tmp_path):
    run = RunDirectory.create(tmp_path / "demo", "")
    path = run.write_rollouts(12, ROWS)
    first = path.read_bytes()
    assert path.name == "step_000012.jsonl.gz"
    assert run.read_rollouts(12) == [{**ROWS[0], "logprobs": [-0.5, None]}, ROWS[1]]
    assert gzip.decompress(first).count(b"\n") == 2
    assert run.write_rollouts(12, ROWS).read_bytes() == first


def test_missing_rollouts_name_those_that_exist(tmp_path):
    run = make_run(tmp_path)
    with pytest.raises(FileNotFoundError, match="no rollouts of step 7; steps there: 1, 2, 3"):
        run.read_rollouts(7)


def test_rollouts_that_fail_half_way_leave_no_file(tmp_path):
    run = RunDirectory.create(tmp_path / "demo", "")

    def rows():
        yield ROWS[0]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="free some space"):
        run.write_rollouts(1, rows())
    assert list(run.rollouts_path.iterdir()) == []


def test_rewind_ends_the_log_at_the_step_and_keeps_checkpoints(tmp_path):
    run = make_run(tmp_path, steps=12)
    (run.rollouts_path / ".tmp-1-step_000013.jsonl.gz").touch()
    (run.rollouts_path / "step_notes.jsonl.gz").touch()
    run.rewind(9)
    assert [record["step"] for record in run.read_metrics()] == list(range(1, 10))
    assert [event["step"] for event in run.read_timeline()] == [step for step in range(1, 10) for _ in "ab"]
    assert run.rollout_steps() == list(range(1, 10))
    assert run.checkpoint_steps() == list(range(1, 13))
    assert not list(run.rollouts_path.glob(".tmp-*"))


def test_rewound_run_goes_on_as_if_it_had_never_been_ahead(tmp_path):
    straight, wound = make_run(tmp_path / "a", steps=4), make_run(tmp_path / "b", steps=4)
    wound.rewind(2)
    for step in (3, 4):
        wound.append_metrics(step, {"critic/score/mean": step / 10})
    assert wound.metrics.path.read_bytes() == straight.metrics.path.read_bytes()


def test_rewind_of_a_run_without_records(tmp_path):
    run = RunDirectory.create(tmp_path / "demo", "")
    run.rewind(0)
    assert run.read_metrics() == []
    assert run.checkpoint_steps() == []


def test_unwritable_place_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError, match=r"cannot write in .*file/demo: .*run\.root"):
        RunDirectory.create(tmp_path / "file" / "demo", "")
    assert (tmp_path / "file").read_text() == "in the way"


def test_folder_that_forbids_writing_is_a_clear_error(tmp_path):
    tmp_path.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)  # root may write anywhere; nobody may not
    try:
        with pytest.raises(
            PermissionError, match=f"cannot write in {tmp_path}/demo: .*make the folder writable"
        ):
            RunDirectory.create(tmp_path / "demo", "")
    finally:
        if is_root:
            os.seteuid(0)
        tmp_path.chmod(0o755)
    assert list(tmp_path.iterdir()) == []
