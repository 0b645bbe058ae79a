"""The order of problems is a pure function of seed and position."""

from foresail.data.selection.order import problem_at


def order(count: int, seed: int, start: int, end: int) -> list[int]:
    return [problem_at(position, count, seed) for position in range(start, end)]


def test_every_pass_sees_every_problem_once() -> None:
    passes = [order(50, 7, 50 * epoch, 50 * (epoch + 1)) for epoch in range(4)]
    assert all(sorted(one) == list(range(50)) for one in passes)
    assert len({tuple(one) for one in passes}) == 4


def test_resuming_at_any_position_goes_on_exactly() -> None:
    whole = order(13, 1, 0, 60)
    assert [order(13, 1, position, 60) for position in range(60)] == [
        whole[position:] for position in range(60)
    ]


def test_seeds_differ_and_stay_what_they_were() -> None:
    assert order(20, 0, 0, 20) != order(20, 1, 0, 20)
    # Written down once: a change here would make every old run resume wrongly.
    assert order(8, 0, 0, 8) == [0, 3, 7, 5, 1, 2, 6, 4]
