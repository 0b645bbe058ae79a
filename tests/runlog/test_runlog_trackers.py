"""TensorBoard files are read back with TensorBoard's own reader; Weights & Biases is stood in for."""

import math
import sys
import types

import pytest

from foresail.runlog.trackers import TensorBoard, open_trackers


def read_scalars(folder, tag):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {event.step: event.value for event in events.Scalars(tag)}


def refuse_notes(text):
    raise AssertionError(f"unexpected note: {text}")


def test_events_are_what_was_logged(tmp_path):
    trackers = open_trackers(tmp_path, wandb_project=None, resumed_at=None, note=refuse_notes)
    trackers.log(0, {"score": 0.25, "label": "text is no curve", "missing": None})
    trackers.log(1, {"score": 0.5, "count": 3})
    # before closing: a killed run has written every step
    assert read_scalars(tmp_path / "tensorboard", "score") == {0: 0.25, 1: 0.5}
    trackers.close()
    assert read_scalars(tmp_path / "tensorboard", "count") == {1: 3.0}
    with pytest.raises(KeyError):
        read_scalars(tmp_path / "tensorboard", "label")


def test_nan_reaches_tensorboard(tmp_path):
    tracker = TensorBoard(tmp_path, resumed_at=None)
    tracker.log(1, {"loss": math.nan})
    assert math.isnan(read_scalars(tmp_path, "loss")[1])


def test_resumed_run_forgets_the_steps_after_its_checkpoint(tmp_path):
    killed = TensorBoard(tmp_path, resumed_at=None)
    for step in range(1, 6):
        killed.log(step, {"score": float(step)})
    resumed = TensorBoard(tmp_path, resumed_at=3)
    assert read_scalars(tmp_path, "score") == {1: 1.0, 2: 2.0, 3: 3.0}
    resumed.log(4, {"score": 40.0})
    assert read_scalars(tmp_path, "score") == {1: 1.0, 2: 2.0, 3: 3.0, 4: 40.0}


def test_torn_event_does_not_hide_the_resumed_ones(tmp_path):
    TensorBoard(tmp_path, resumed_at=None).log(1, {"score": 1.0})
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + whole[-10:])
    TensorBoard(tmp_path, resumed_at=1).log(2, {"score": 20.0})
    assert read_scalars(tmp_path, "score") == {1: 1.0, 2: 20.0}


def test_event_files_sort_in_the_order_of_starts(tmp_path):
    (tmp_path / "events.out.tfevents.1700000000.host.1.0").touch()
    (tmp_path / "events.out.tfevents.odd.name").touch()
    TensorBoard(tmp_path, resumed_at=None)
    TensorBoard(tmp_path, resumed_at=0)
    ours = sorted(path.name for path in tmp_path.glob("*.foresail"))
    assert ours == ["events.out.tfevents.1700000001.foresail", "events.out.tfevents.1700000002.foresail"]


def test_missing_tensorboard_is_one_note_and_no_more(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    notes = []
    trackers = open_trackers(tmp_path, wandb_project=None, resumed_at=None, note=notes.append)
    trackers.log(1, {"score": 1.0})
    trackers.close()
    assert len(notes) == 1
    assert "pip install tensorboard" in notes[0]


def test_unwritable_place_is_a_clear_error(tmp_path):
    (tmp_path / "tensorboard").write_text("in the way")
    with pytest.raises(OSError, match=r"cannot write in .*tensorboard"):
        open_trackers(tmp_path, wandb_project=None, resumed_at=None, note=refuse_notes)


def test_missing_wandb_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'foresail\[wandb\]'"):
        open_trackers(tmp_path, wandb_project="p", resumed_at=None, note=refuse_notes)


def test_wandb_run_is_resumed_by_its_stored_id(tmp_path, monkeypatch):
    calls = []
    service = types.SimpleNamespace(
        log=lambda metrics, step: calls.append((step, metrics)), finish=lambda: calls.append("finish")
    )
    starts = []
    stand_in = types.SimpleNamespace(init=lambda **options: starts.append(options) or service)
    monkeypatch.setitem(sys.modules, "wandb", stand_in)

    for resumed_at in (None, 1):
        trackers = open_trackers(tmp_path, wandb_project="p", resumed_at=resumed_at, note=refuse_notes)
        trackers.log(1, {"score": 1.0})
        trackers.close()
    assert calls == [(1, {"score": 1.0}), "finish"] * 2
    assert starts[0] == starts[1]
    assert starts[0]["project"] == "p"
    assert starts[0]["name"] == tmp_path.name
    assert starts[0]["resume"] == "allow"
    assert starts[0]["id"] == (tmp_path / "wandb_id").read_text().strip()


def test_wandb_that_does_not_begin_is_one_line(tmp_path, monkeypatch):
    class Refused(Exception):
        pass

    def init(**_options):
        raise Refused("api_key not configured (no-tty)")

    stand_in = types.SimpleNamespace(init=init, errors=types.SimpleNamespace(Error=Refused))
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    with pytest.raises(OSError, match=r"does not begin: api_key not configured .*wandb login"):
        open_trackers(tmp_path, wandb_project="p", resumed_at=None, note=refuse_notes)
