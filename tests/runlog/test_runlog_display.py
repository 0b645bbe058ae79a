"""The display: plain lines when piped, a live view on a terminal, and a terminal that stays usable."""

import io
import math
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from foresail.runlog.display import Display, clock_time, readings, sparkline

METRICS = {
    "critic/rewards/mean": 0.812,
    "rollout/accuracy": 0.84,
    "response_length/mean": 21.34,
    "actor/entropy": 0.412,
    "perf/throughput": 15200.4,
    "timing_s/step": 1.0,
}
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class Clock:
    """A second goes by at each update."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def plain_display(**options) -> tuple[Display, io.StringIO]:
    file = io.StringIO()
    return Display("rl", 20, console=Console(file=file, width=20), **options), file


def test_plain_line_of_a_step():
    clock = Clock()
    display, file = plain_display(clock=clock)
    with display:
        for step in range(1, 13):
            clock.now += 1.0
            display.update(step, METRICS)
    lines = file.getvalue().splitlines()
    assert len(lines) == 12
    assert lines[-1] == (
        "rl 12/20 reward 0.81 accuracy 0.84 length 21.3 entropy 0.41 tokens/s 15200 left 0:08"
    )


def test_plain_lines_hold_only_what_was_logged():
    display, file = plain_display()
    display.update(0, {"val-core/arithmetic/acc/mean@8": 0.456})
    display.update(1, {"train/loss": 2.3456, "train/lr": 0.001, "actor/entropy": math.nan})
    display.note("checkpoint saved")
    first, second, note = file.getvalue().splitlines()
    assert first == "rl 0/20 arithmetic mean@8 0.46 left ?"
    assert second.startswith("rl 1/20 loss 2.346 entropy nan lr 1.0e-03 left ")
    assert note == "checkpoint saved"


def test_an_accuracy_that_nobody_measured_is_not_shown_and_terms_are():
    own = {"critic/rewards/mean": 0.4, "critic/score/mean": 0.3, "rollout/accuracy": 0.0}
    shown = readings({**own, "reward/brevity/mean": 0.25, "reward/spread": 3.0})
    assert {label: text for label, (_, text) in shown.items()} == {"reward": "0.40", "brevity": "0.25"}
    assert readings({**own, "critic/score/mean": 0.0})["accuracy"] == (0.0, "0.00")
    assert "accuracy" in readings({**own, "rollout/accuracy": 0.1})


def test_the_reward_of_all_samples_leads_and_that_of_kept_groups_is_named():
    groups = {"rollout/groups_used": 8, "rollout/groups_launched": 21}
    shown = readings({"rollout/reward": 0.11, "critic/rewards/mean": 0.5, **groups})
    assert {label: text for label, (_, text) in shown.items()} == {
        "reward": "0.11",
        "reward, learned from": "0.50",
        "groups learned from": "8 of 21",
    }
    same = {"rollout/reward": 0.5, "critic/rewards/mean": 0.5, **groups, "rollout/groups_launched": 8}
    assert list(readings(same)) == ["reward"]


def test_time_left_counts_from_the_resumed_step_and_follows_the_recent_pace():
    clock = Clock()
    display, _ = plain_display(clock=clock, done=10)
    clock.now = 5.0
    display.update(11, {})
    assert display.time_left() == "0:45"  # nine steps of five seconds; the ten before cost this run nothing
    clock.now = 7.0
    assert display.time_left() == "0:43"

    display, _ = plain_display(clock=clock)
    for step in range(1, 101):
        clock.now += 100.0 if step < 50 else 1.0
        display.update(step, {})
    display.total = 110
    assert display.time_left() == "0:10"


PIPED = """
from foresail.runlog.display import Display
with Display("rl", 3) as display:
    for step in (1, 2, 3):
        display.update(step, {"critic/rewards/mean": 0.5})
        display.note("noted")
        if step == 2:
            raise KeyboardInterrupt
"""


def test_piped_process_writes_plain_lines_even_where_colour_is_forced():
    result = subprocess.run(
        [sys.executable, "-c", PIPED],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={"FORCE_COLOR": "1", "COLUMNS": "10"},
    )
    assert [line.split(" left")[0] for line in result.stdout.splitlines()] == [
        "rl 1/3 reward 0.50",
        "noted",
        "rl 2/3 reward 0.50",
        "noted",
    ]
    assert "\x1b" not in result.stdout
    assert "KeyboardInterrupt" in result.stderr


def live_display() -> tuple[Display, io.StringIO]:
    class Terminal(io.StringIO):
        encoding = "utf-8"

    file = Terminal()
    return Display("rl", 20, console=Console(force_terminal=True, file=file, width=80)), file


def test_live_view_shows_progress_values_and_curve():
    display, file = live_display()
    with display:
        for step, reward in enumerate((0.0, 0.5, 1.0), start=10):
            display.update(step, {**METRICS, "critic/rewards/mean": reward})
        display.note("checkpoint [saved]")
    shown = file.getvalue()
    for expected in ("12/20", "reward", "1.00", "▁▅█", "21.3", "15200", "left", "checkpoint [saved]"):
        assert expected in shown
    assert shown.index("checkpoint [saved]") < shown.rindex("12/20"), "notes stand above the view"


def test_long_curve_keeps_its_newest_end():
    display, file = live_display()
    with display:
        for step in range(200):
            display.update(step, {**METRICS, "critic/rewards/mean": float(step == 199)})
    last_row = next(line for line in reversed(file.getvalue().splitlines()) if "reward" in line)
    assert "▁▁█" in last_row
    assert "…" not in last_row


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("NaN loss")])
def test_terminal_is_restored_when_the_stage_fails(error):
    display, file = live_display()

    def fail() -> None:
        with display:
            display.update(1, METRICS)
            raise error

    with pytest.raises(type(error)):
        fail()
    shown = file.getvalue()
    assert HIDE_CURSOR in shown
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert display.live is not None and not display.live.is_started


def test_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    display, file = live_display()
    with display:
        display.update(1, METRICS)
    assert "\x1b" not in file.getvalue()


def test_clock_time():
    assert [clock_time(seconds) for seconds in (0, 8.4, 59.6, 3723)] == ["0:00", "0:08", "1:00", "1:02:03"]


def test_sparkline_spans_least_to_greatest_of_the_last_values():
    assert sparkline([1, 2, 3], 8) == "▁▅█"
    assert sparkline([9, 0, 7], 2) == "▁█"
    assert sparkline([4, 4], 8) == "▁▁"
    assert sparkline([], 8) == ""
