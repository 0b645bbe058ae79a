"""A run's timeline: lines read into spans, what they come to, and what `show --timeline` makes of them."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from foresail.runlog import timeline_plot
from foresail.runlog.directory import RunDirectory
from foresail.runlog.timeline import (
    Chunk,
    LaunchesClosed,
    Span,
    StepPart,
    Wait,
    name_ranges,
    natural,
    read_step,
)
from foresail.runlog.timeline_figures import (
    busy_seconds,
    count_over_time,
    group_outcomes,
    groups_under_way,
    measure_grading,
    measure_work,
    stack,
    tail_seconds,
    write_seconds,
)
from foresail.runlog.timeline_plot import clusters, plot_timeline
from foresail.runlog.timeline_report import show_timeline

BEGAN = 1000.0


def line(what: str, start: float, end: float | None = None, step: int = 2, **facts: Any) -> dict[str, Any]:
    end = start if end is None else end
    return {"step": step, "what": what, "start": BEGAN + start, "end": BEGAN + end, **facts}


def dispatch(at: float, request: str, instance: str = "a") -> dict[str, Any]:
    return line("dispatch", at, request=request, instance=instance, generated=0, max_tokens=9, why="probe")


def chunk(
    at: float, request: str, instance: str = "a", tokens: int = 5, finished: bool = True
) -> dict[str, Any]:
    return line("chunk", at, request=request, instance=instance, new_tokens=tokens, finished=finished)


def grade(start: float, end: float, request: str, status: str = "correct") -> dict[str, Any]:
    return line("grade", start, end, request=request, status=status)


# A step with two instances, of which one is lost: groups 4 and 7 are learned from, 5 teaches nothing, 6 comes too
# late, 8 is cut off. The first event is of an instance that was there before the step began.
STEP = [
    line("rollout", 0, 10),
    line("update", 10, 14),
    line("save", 15, 16),
    line("add_instance", -3, instance="a", kv_tokens=100),
    *(line("launch", 0, group=group, requests=1) for group in (4, 5, 6)),
    dispatch(0, "4.0"),
    dispatch(0, "5.0"),
    dispatch(1, "6.0", "b"),
    line("lose_instance", 2, instance="b", requests=["6.0"]),
    dispatch(2, "6.0"),
    chunk(3, "4.0", tokens=3, finished=False),
    dispatch(3, "4.0"),
    line("late", 3, request="6.0", instance="b", new_tokens=1, finished=True),
    chunk(4, "4.0"),
    chunk(4, "5.0"),
    chunk(5, "6.0"),
    grade(4, 5, "5.0", "wrong"),
    *(line("launch", 5, group=group, requests=1) for group in (7, 8)),
    dispatch(5, "7.0"),
    dispatch(6, "8.0"),
    grade(5, 6, "6.0"),
    chunk(7, "7.0"),
    grade(7, 8, "7.0"),
    grade(4, 9, "4.0"),
    line("closing", 9, prefix=[4, 5, 7], chosen=[4, 7], surplus=[6], cancelled=[8], share=0.5),
    line("cancel", 9, group=8, open=1, running=["8.0"]),
]  # fmt: skip
EVALUATION = [
    line("eval", 20, 24),
    line("launch", 20, group=9, requests=1),
    dispatch(20, "9.0"),
    chunk(22, "9.0", tokens=40),
    grade(22, 23, "9.0"),
    line("closing", 23, prefix=[9], chosen=[9], surplus=[], cancelled=[], share=1.0),
]


# From events to spans.


def test_a_dispatch_and_what_ended_it_are_one_span():
    timeline = read_step(STEP)
    assert (timeline.step, timeline.seconds) == (2, 16)
    assert timeline.parts == [
        StepPart(name="rollout", start=0, end=10),
        StepPart(name="update", start=10, end=14),
        StepPart(name="save", start=15, end=16),
    ]
    assert timeline.chunks == [
        Chunk(request="6.0", instance="b", start=1, end=2, tokens=0, how="lost"),
        Chunk(request="4.0", instance="a", start=0, end=3, tokens=3, how="parked"),
        Chunk(request="4.0", instance="a", start=3, end=4, tokens=5, how="finished"),
        Chunk(request="5.0", instance="a", start=0, end=4, tokens=5, how="finished"),
        Chunk(request="6.0", instance="a", start=2, end=5, tokens=5, how="finished"),
        Chunk(request="7.0", instance="a", start=5, end=7, tokens=5, how="finished"),
        Chunk(request="8.0", instance="a", start=6, end=9, tokens=0, how="cancelled"),
    ]
    assert [len(chunks) for chunks in timeline.instances.values()] == [6, 1]
    assert timeline.waits[0] == Wait(request="5.0", start=4, end=5, status="wrong")
    assert timeline.launches == {4: 0, 5: 0, 6: 0, 7: 5, 8: 5}
    assert (timeline.cancels, timeline.losses) == ({8: 9}, {"b": 2})
    assert timeline.closings == [LaunchesClosed(at=9, chosen=(4, 7), surplus=(6,), cancelled=(8,))]


def test_what_nothing_ended_is_open_until_the_end():
    """So it is when the file is read in the moment it is written."""
    timeline = read_step([line("rollout", 0, 10), dispatch(1, "0.0")])
    assert timeline.chunks == [Chunk(request="0.0", instance="a", start=1, end=10, tokens=0, how="open")]
    assert read_step([dispatch(1, "0.0"), chunk(4, "0.0")]).seconds == 3, "before the parts are written"


def test_steps_do_not_mix_though_a_resumed_run_numbers_its_groups_anew():
    before = [{**event, "step": 1, "start": event["start"] - 50, "end": event["end"] - 50} for event in STEP]
    for events in ([*before, *STEP], [*STEP, *before]):
        assert read_step(events) == read_step(STEP)
        earlier = read_step(events, 1)
        assert (earlier.step, earlier.chunks) == (1, read_step(STEP).chunks)


def test_a_step_that_is_not_there_names_those_that_are():
    events = [line("update", 0, 1, step=step) for step in (0, 1, 2, 3, 7, 9, 10)]
    with pytest.raises(ValueError, match=r"no step 5; steps there: 0 to 3, 7, 9 to 10$"):
        read_step(events, 5)
    with pytest.raises(ValueError, match="no timeline yet"):
        read_step([])
    assert name_ranges([4]) == "4"


def test_rollout_and_evaluation_are_told_apart():
    timeline = read_step([*STEP, *EVALUATION])
    rollout, evaluation = timeline.generating
    assert rollout.chunks == read_step(STEP).chunks
    assert [(chunk.group, chunk.tokens) for chunk in evaluation.chunks] == [(9, 40)]
    assert [*evaluation.launches] == [9] and evaluation.closings[0].chosen == (9,)
    assert group_outcomes(timeline) == {**group_outcomes(rollout), 9: "held out"}


def test_decisions_are_rounded_and_parts_are_not():
    """A launch may seem to come before the rollout that it is the first act of."""
    events = [line("rollout", 0.00003, 1), dispatch(0.0, "0.0"), chunk(1.00002, "0.0")]
    (rollout,) = read_step(events).generating
    assert len(rollout.chunks) == 1


# What they come to.


def test_outcomes_of_groups():
    timeline = read_step(STEP)
    assert group_outcomes(timeline) == {4: "chosen", 5: "equal", 6: "surplus", 7: "chosen", 8: "cancelled"}
    unclosed = [event for event in STEP if event["what"] != "closing"]
    assert {*group_outcomes(read_step(unclosed)).values()} == {"open"}


def test_a_group_is_under_way_until_its_last_verdict_or_its_cancel():
    spans = groups_under_way(read_step(STEP))
    assert [(span.start, span.end) for span in spans] == [(0, 9), (0, 5), (0, 6), (5, 8), (5, 9)]


def test_work_and_grading():
    timeline = read_step(STEP)
    part = timeline.parts[0]
    work = measure_work(timeline.instances["a"], part)
    assert (work.busy, work.rows) == pytest.approx((0.9, (3 + 1 + 4 + 3 + 2 + 3) / 10))
    assert (work.tokens, work.chunks) == (23, 6)
    dropped = Wait(request="8.0", start=0, end=100, status="dropped")
    grading = measure_grading([*timeline.waits, dropped])
    assert (grading.verdicts, grading.mean, grading.longest) == (4, (1 + 1 + 1 + 5) / 4, 5)
    assert measure_grading([dropped]).verdicts == 0


def some_spans(seed: int) -> list[Span]:
    numbers = random.Random(seed)
    starts = [numbers.randrange(40) for _ in range(numbers.randrange(1, 30))]
    return [Span(start=start, end=start + numbers.randrange(1, 9)) for start in starts]


@pytest.mark.parametrize("seed", range(30))
def test_spans_against_counting_second_by_second(seed: int):
    spans = some_spans(seed)
    running = [[span for span in spans if span.start <= second < span.end] for second in range(60)]
    assert busy_seconds(spans) == sum(map(bool, running))

    counts = dict(zip(*count_over_time(spans), strict=True))
    count = 0
    for second in range(60):
        count = counts.get(second, count)
        assert count == len(running[second])

    rows = dict(zip(map(id, spans), stack(spans), strict=True))
    assert all(len({rows[id(span)] for span in now}) == len(now) for now in running), "two in one row"
    assert max(rows.values()) + 1 == max(map(len, running)), "more rows than are needed"


def test_tail_is_what_the_last_tenth_takes():
    assert tail_seconds([30, 9, 8, 7, 6, 5, 4, 3, 2, 1]) == 21
    assert tail_seconds(range(100)) == 10
    assert tail_seconds([5]) == tail_seconds([]) == 0


def test_short_texts():
    assert [write_seconds(s) for s in (75, 1.234, 0.0042, 0)] == ["75 s", "1.23 s", "4.2 ms", "0 ms"]
    assert sorted(["gpu10", "gpu2", "engine"], key=natural) == ["engine", "gpu2", "gpu10"]
    assert clusters([5, 0, 0.1], reach=1) == [(0, 2), (5, 1)]


# The picture.


def lanes(figure) -> list[str]:
    return [axes.get_ylabel() for axes in figure.axes]


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_lanes_of_a_step_with_single_requests():
    figure = plot_timeline(read_step(STEP), "demo")
    assert lanes(figure) == ["step", "groups\nunder way", "a", "b", "verdicts\nawaited"]
    assert legend(figure) == ["learned from: 2", "taught nothing: 1", "surplus: 1", "cancelled: 1"]
    parts, groups, first, second, _ = figure.axes
    assert [text.get_text() for text in parts.texts] == ["16 s", "rollout", "update", "save", "closed"]
    assert [text.get_text() for text in groups.texts] == ["5 launched", "+3", "+2"]
    assert [(bar.get_x(), bar.get_width()) for bar in first.patches] == [
        (0, 3), (3, 1), (0, 4), (2, 3), (5, 2), (6, 3)
    ]  # fmt: skip
    assert [text.get_text() for text in second.texts] == ["10% busy\n0.1 rows", "  lost"]


def test_many_requests_become_areas(monkeypatch):
    monkeypatch.setattr(timeline_plot, "MAX_BARS", 5)
    figure = plot_timeline(read_step(STEP))
    assert not figure.axes[2].patches
    heights = [area.get_datalim(area.axes.transData).y1 for area in figure.axes[2].collections]
    assert max(heights) == 3 == max(count_over_time(read_step(STEP).instances["a"])[1])


def test_a_step_without_a_rollout_has_one_lane():
    figure = plot_timeline(read_step([line("save", 0, 1)]))
    assert lanes(figure) == ["step"] and not figure.legends


# show --timeline


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "demo" / "rl", 'stage = "rl"\n')
    run.append_timeline(line("update", 0, 1, step=1))
    run.append_timeline(*STEP)
    return run


def shown(path: Path, step: int | None = None) -> str:
    file = io.StringIO()
    show_timeline(path, step, Console(file=file, width=120))
    return file.getvalue()


def test_show_prints_the_last_step_and_plots_it(run: RunDirectory):
    text = shown(run.path)
    words = " ".join(text.split())
    assert words.startswith(f"{run.path}, step 2 step 16 s rollout 10 s update 4.00 s save 1.00 s")
    assert "rollout, a busy 90%, 1.6 rows on average, 23 tokens in 6 chunks" in words
    assert "rollout, b busy 10%, 0.1 rows on average, 0 tokens in 1 chunks, lost after 2.00 s" in words
    assert "rollout, tail 2.00 s" in words
    assert "rollout, grading 4 verdicts, 2.00 s on average, 5.00 s at most" in words
    assert "rollout, groups 5 launched, 2 chosen, 1 surplus, 1 cancelled" in words
    picture = run.path / "timeline_step_2.png"
    assert words.endswith(f"timeline: {picture}")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_show_takes_another_step_and_passes_over_a_torn_line(run: RunDirectory):
    with run.timeline.path.open("ab") as file:
        file.write(b'{"step": 3, "what": "roll')
    assert "step 1" in shown(run.path, 1) and "step 2" in shown(run.path)
    assert sorted(path.name for path in run.path.glob("*.png")) == [
        "timeline_step_1.png",
        "timeline_step_2.png",
    ]


def test_show_finds_the_run_in_a_folder_of_runs(run: RunDirectory):
    other = RunDirectory.create(run.path.parent / "sft", 'stage = "sft"\n')
    other.append_timeline(line("save", 0, 1, step=50))
    assert shown(run.path.parent).startswith(f"{run.path}, step 2")


def test_mistakes_are_named(run: RunDirectory, tmp_path: Path):
    with pytest.raises(ValueError, match=f"{run.path}: the timeline has no step 9; steps there: 1 to 2"):
        shown(run.path, 9)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        shown(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is no run"):
        shown(tmp_path)
    fresh = RunDirectory.create(tmp_path / "fresh", "")
    with pytest.raises(ValueError, match=f"{fresh.path}: there is no timeline yet"):
        shown(fresh.path)


def test_without_matplotlib_the_figures_are_still_shown(run: RunDirectory, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = shown(run.path)
    assert "rollout, tail" in text and "no timeline drawn: plots need matplotlib" in text
