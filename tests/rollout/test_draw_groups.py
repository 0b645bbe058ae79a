from __future__ import annotations

from dataclasses import replace

from small_rollouts import STOPS, draw_settings, some_problems, tiny_engine

from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.rollout.groups import draw_groups


def test_every_problem_comes_once_with_all_its_samples():
    problems = some_problems(9)
    drawn = list(draw_groups(tiny_engine(max_running=7), problems, draw_settings(5)))
    assert sorted(entry.problem.id for entry, _ in drawn) == sorted(entry.problem.id for entry in problems)
    for entry, samples in drawn:
        assert len(samples) == 5
        assert all(tuple(sample.ids[: len(entry.ids)]) == entry.ids for sample in samples)


def test_samples_are_flat_records():
    engine = tiny_engine()
    engine.weights_changed(4)
    for entry, samples in draw_groups(engine, some_problems(6), draw_settings(4)):
        for sample in samples:
            prompt, response = len(entry.ids), len(sample.ids) - len(entry.ids)
            assert sample.loss_mask == [0] * prompt + [1] * response
            assert sample.versions == [0] * prompt + [4] * response
            assert sample.turns == [0] * (prompt + response)
            assert sample.logprobs[:prompt] == [0.0] * prompt
            assert len(sample.logprobs) == len(sample.ids) and all(p < 0 for p in sample.logprobs[prompt:])
            assert sample.num_response_tokens == response
            stopped = sample.ids[-1] in STOPS
            assert sample.finish == ("stop" if stopped else "length")
            assert stopped or response == 12
            assert not set(STOPS) & set(sample.ids[prompt:-1])


def test_each_sample_stands_at_its_own_number():
    """Sample n of a group is what its own noise key gives when it is drawn alone."""
    problems, draw = some_problems(3), draw_settings(4, seed=3, step=8)
    for entry, samples in draw_groups(tiny_engine(max_running=3), problems, draw):
        for number, sample in enumerate(samples):
            request = Request(
                id="alone",
                prompt=entry.ids,
                key=noise_key(3, 8, entry.problem.id, number),
                sampling=draw.sampling,
                stop_ids=draw.stop_ids,
            )
            (alone,) = tiny_engine().generate([request])
            assert sample.ids == [*entry.ids, *alone.ids]


def test_groups_come_as_they_end_not_as_they_were_asked():
    problems, draw = some_problems(8), draw_settings(3)
    order = [entry.problem.id for entry, _ in draw_groups(tiny_engine(), problems, draw)]
    longest = {
        entry.problem.id: max(sample.num_response_tokens for sample in samples)
        for entry, samples in draw_groups(tiny_engine(), problems, draw)
    }
    assert order == sorted(order, key=lambda name: longest[name])
    assert order != [entry.problem.id for entry in problems]


def test_another_step_or_seed_draws_other_samples():
    problems, draw = some_problems(2), draw_settings(4)

    def ids(draw) -> list[list[int]]:
        return [sample.ids for _, samples in draw_groups(tiny_engine(), problems, draw) for sample in samples]

    assert sorted(ids(draw)) == sorted(ids(draw))
    assert sorted(ids(draw)) != sorted(ids(replace(draw, step=2)))
    assert sorted(ids(draw)) != sorted(ids(replace(draw, seed=1)))


def test_a_broken_judge_leaves_no_samples_behind():
    """An error between two groups must not leave rows in the engine for the next caller."""
    engine, problems = tiny_engine(), some_problems(8)
    for _ in draw_groups(engine, problems, draw_settings(3)):
        break
    assert not engine.busy
    assert len(list(draw_groups(engine, problems[:2], draw_settings(3)))) == 2
