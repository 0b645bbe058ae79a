"""A step's figures are those of the groups it was closed on, in whichever order their episodes ended."""

from __future__ import annotations

import random

from foresail.agents.environment import Observation, ToolUse
from foresail.agents.figures import EpisodeFigures
from foresail.rollout.plan import SampleSpec

TIMES = ("agent/waiting/", "agent/tool_seconds/")


def add(figures: EpisodeFigures, group: int, sample: int, clock: random.Random) -> None:
    """An episode whose turns and tools follow from its number, and whose times are any."""
    own = random.Random(10 * group + sample)
    uses = tuple(
        ToolUse(tool=own.choice(["search", "sum", ""]), seconds=clock.random(), error=own.choice(["", "no"]))
        for _ in range(own.randint(0, 4))
    )
    spec = SampleSpec(id=f"{group}.{sample}", group=group, sample=sample, prompt_tokens=3, max_tokens=9)
    turns, records = own.randint(1, 4), own.randint(1, 2)
    figures.add(
        spec, turns, [Observation(uses=uses)], seconds=clock.random(), waited=0.0, num_records=records
    )


def test_neither_order_nor_groups_under_way_nor_times_change_a_count() -> None:
    episodes = [(group, sample) for group in range(6) for sample in range(3)]
    found = []
    for seed in range(50):
        clock, figures = random.Random(seed), EpisodeFigures()
        clock.shuffle(episodes)
        for group, sample in episodes:
            if group < 4 or clock.random() < 0.5:  # of the later groups some had ended
                add(figures, group, sample, clock)
        figures.close(range(4))
        found.append(figures.take())
        assert figures.take() == {}
    steady = [[(name, value) for name, value in each.items() if not name.startswith(TIMES)] for each in found]
    assert steady.count(steady[0]) == len(steady) and len(steady[0]) == 4
    assert all(each.keys() == found[0].keys() for each in found)


def test_what_a_step_left_under_way_is_not_counted_in_the_next() -> None:
    figures, clock = EpisodeFigures(), random.Random(0)
    add(figures, 1, 0, clock)
    figures.close([0])
    assert figures.take() == {}
    add(figures, 2, 0, clock)
    figures.close([2])
    assert figures.take()["agent/turns/mean"] == turns_of(2, 0)


def turns_of(group: int, sample: int) -> float:
    alone = EpisodeFigures()
    add(alone, group, sample, random.Random(1))
    alone.close([group])
    return alone.take()["agent/turns/mean"]
