"""The simulator: sums against single steps, groups against what was asked for, books against each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine

from foresail.recipe.load import RecipeError
from foresail.rollout.clock import VirtualClock
from foresail.rollout.controller import Outcome
from foresail.rollout.costs import CARDS, MEASURED, MEASURED_ON, StepCost, carry_over, fit, fit_table
from foresail.rollout.drafting_gain import DraftingGain, Speculation, expected_tokens
from foresail.rollout.plan import Ask, ChunkEnded, Dispatch
from foresail.rollout.policies import build_policy
from foresail.rollout.scheduler import Scheduler
from foresail.rollout.simulate import Rounds, StepResult, simulate
from foresail.rollout.simulated import Row, SimulatedInstance, seconds_for, steps_in
from foresail.rollout.simulated_cluster import Cluster, Graders, Progress
from foresail.rollout.simulation import Simulation, load_simulation
from foresail.rollout.simulation_report import rows_over_time, summarize
from foresail.rollout.workloads import Problems, Workload, beta_width, exponential_rate

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "benchmarks/measured/h200_step_costs.json"
COST = StepCost(fixed=4e-3, per_entry=2e-5, per_cached_token=1e-8, verify=1e-3)


def small(**changes: Any) -> Simulation:
    """A cluster of four, where room is short, and twenty groups of four."""
    tables: dict[str, Any] = {
        "cluster": {"instances": 4, "weight_gb": 126.5, "costs": str(TABLE)},
        "workload": {"groups": 20, "samples": 4, "mean_tokens": 600, "max_tokens": 2000, "prompt_tokens": 50},
        "rollout": {"chunk_tokens": 256},
    }
    for key, value in changes.items():
        if isinstance(value, dict):
            tables[key] = tables.get(key, {}) | value
        else:
            tables[key] = value
    return Simulation.model_validate(tables)


def run_one(**changes: Any) -> StepResult:
    return simulate(small(**changes))[0]


# The clock.


def test_virtual_time_jumps_and_equal_moments_keep_their_order() -> None:
    clock, seen = VirtualClock(), []

    def note(name: str) -> Callable[[], None]:
        return lambda: seen.append((name, clock.now()))

    clock.at(5.0, note("late"))
    clock.at(1.0, note("first"))
    clock.at(1.0, note("second"))
    clock.at(2.0, lambda: clock.at(0.5, note("past")))
    clock.run()
    assert seen == [("first", 1.0), ("second", 1.0), ("past", 2.0), ("late", 5.0)]


# Costs.


def test_fit_finds_the_numbers_that_made_the_table() -> None:
    rows = [
        {
            "batch": batch,
            "draft_length": draft,
            "context": context,
            "milliseconds": 1e3
            * COST.step(entries=batch * (draft + 1), cached=batch * context, drafting=draft > 0),
        }
        for batch in (1, 8, 64, 256)
        for draft in (0, 1, 4, 16)
        for context in (500, 2000)
    ]
    found = fit(rows)
    assert found.worst_error < 1e-9
    for name in ("fixed", "per_entry", "per_cached_token", "verify"):
        assert getattr(found.cost, name) == pytest.approx(getattr(COST, name), rel=1e-6)


@pytest.mark.parametrize(("shape", "mean_error"), [("7B", 0.06), ("1.5B", 0.12)])
def test_the_measured_table_is_a_roofline(shape: str, mean_error: float) -> None:
    found = fit_table(TABLE, shape)
    assert found.mean_error < mean_error
    # No card reads faster than its data sheet: what the fit says must be possible.
    served = MEASURED[shape]
    assert 0.3 < served.weight_bytes / MEASURED_ON.bandwidth / found.cost.fixed < 1
    assert 2 * served.active_parameters / MEASURED_ON.flops < found.cost.per_entry


def test_costs_go_with_bytes_and_parameters() -> None:
    served = MEASURED["7B"]
    assert carry_over(COST, served, served, MEASURED_ON, 1) == COST
    halved = carry_over(COST, served, served, MEASURED_ON, 2)
    assert halved.fixed == pytest.approx(COST.fixed / 2)
    h20 = carry_over(COST, served, served, CARDS["H20"], 1)
    assert h20.fixed == pytest.approx(COST.fixed * 1.2)
    assert h20.per_entry == pytest.approx(COST.per_entry * 989 / 148)


# Workloads.


def test_lengths_have_the_mean_the_maximum_and_the_likeness_asked_for() -> None:
    work = Workload(groups=1, samples=8, mean_tokens=7615, max_tokens=40_960, correlation=0.84)
    problems = Problems(work, seed=0, step=0)
    lengths = np.array([problems[group].lengths for group in range(4000)])
    assert lengths.mean() == pytest.approx(7615, rel=0.03)
    assert lengths.min() >= 1 and 40_000 < lengths.max() <= 40_960
    ranks = lengths.ravel().argsort().argsort().reshape(lengths.shape)
    assert 0.78 < np.corrcoef(ranks[:, 0], ranks[:, 1])[0, 1] < 0.88  # of ranks: a little below 0.84


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.5, 0.7])
def test_exponential_rate_gives_the_mean(mean: float) -> None:
    places = (np.arange(200_000) + 0.5) / 200_000
    density = np.exp(-exponential_rate(mean) * places)
    assert (places * density).sum() / density.sum() == pytest.approx(mean, rel=1e-4)


def test_groups_are_valid_as_often_as_asked() -> None:
    work = Workload(groups=1, samples=16, mean_tokens=10, max_tokens=100, valid_share=0.41)
    outcomes = [Problems(work, seed=3, step=0)[group].outcome for group in range(1500)]
    assert np.mean([outcome.valid for outcome in outcomes]) == pytest.approx(0.41, abs=0.04)
    assert not any(outcome.valid and outcome.solved for outcome in outcomes)
    assert np.mean([outcome.solved for outcome in outcomes]) == pytest.approx(0.295, abs=0.04)


def test_beta_width_of_equally_likely_chances_is_1() -> None:
    assert beta_width(7 / 9, 8) == pytest.approx(1)
    with pytest.raises(ValueError, match="out of reach"):
        beta_width(0.9, 2)


def test_a_group_does_not_depend_on_what_was_launched_before_it() -> None:
    work = Workload(groups=1, samples=4, mean_tokens=100, max_tokens=1000, valid_share=0.5)
    forwards, backwards = (Problems(work, seed=1, step=2) for _ in range(2))
    ahead = [forwards[group] for group in range(20)]
    behind = [backwards[group] for group in reversed(range(20))][::-1]
    assert ahead == behind
    assert Problems(work, seed=1, step=3)[0] != ahead[0]


# Drafts.


def test_drafts_gain_what_seer_measured_with_so_many_siblings() -> None:
    gain = DraftingGain(Speculation(max_draft=8))
    for references, tokens in ((0, 1.70), (1, 2.04), (3, 2.18), (15, 2.53), (40, 2.53)):
        assert gain.tokens(references, 8) == pytest.approx(tokens, abs=1e-6)
    assert gain.tokens(5, 0) == 1
    assert expected_tokens(0.5, 2) == 1.75


def test_drafts_are_long_where_the_batch_is_small_and_none_where_it_is_large() -> None:
    gain = DraftingGain(Speculation())
    drafts = [gain.best_draft({5: rows}, rows * 1000.0, COST) for rows in (1, 32, 128, 2048)]
    assert drafts[0] == 8 and drafts[-1] == 0
    assert drafts == sorted(drafts, reverse=True)


def test_references_are_siblings_that_ended_or_are_ahead() -> None:
    progress = Progress(generated=[100, 0, 300, 50, 200], ended=[False, False, False, True, False])
    assert [progress.references(sample) for sample in range(5)] == [3, 4, 1, 3, 2]


# An instance, against steps taken one by one.


def ask(name: str, prompt: int = 100) -> Ask:
    group, sample = map(int, name.split("."))
    return Ask(id=name, group=group, sample=sample, prompt_tokens=prompt, max_tokens=100_000)


def row(name: str, new_tokens: int, prompt: int = 100) -> Row:
    dispatch = Dispatch(ask=ask(name, prompt), instance="i", generated=0, max_tokens=new_tokens)
    return Row(
        dispatch=dispatch,
        finished=True,
        new_tokens=new_tokens,
        references=0,
        to_compute=prompt,
        context=prompt,
        left=new_tokens,
    )


class Alone:
    """One instance and what it reports."""

    def __init__(self, kv_tokens: int = 10**9, max_running: int = 64) -> None:
        self.clock, self.ends, self.spent = VirtualClock(), {}, {}
        self.instance = SimulatedInstance(
            "i",
            kv_tokens=kv_tokens,
            max_running=max_running,
            cost=COST,
            gain=None,
            clock=self.clock,
            report=self.ended,
            spent=self.spent,
        )

    def ended(self, event: ChunkEnded) -> None:
        assert event.ask.id not in self.ends
        self.ends[event.ask.id] = self.clock.now()


def step_by_step(arrivals: dict[str, tuple[float, int]], prompt: int = 100) -> dict[str, float]:
    """When rows end that arrive at a moment and draw so many tokens, one step after the other."""
    now, left, contexts, ends = 0.0, {}, {}, {}
    waiting = dict(sorted(arrivals.items(), key=lambda entry: entry[1][0]))
    while left or waiting:
        if not left:
            now = max(now, min(moment for moment, _ in waiting.values()))
        for name in [name for name, (moment, _) in waiting.items() if moment <= now]:
            left[name], contexts[name] = waiting.pop(name)[1], prompt
            now += prompt * COST.per_prefilled_token
        now += COST.step(entries=len(left), cached=sum(contexts.values()))
        for name in [*left]:
            left[name] -= 1
            contexts[name] += 1
            if left[name] == 0:
                ends[name] = now
                del left[name], contexts[name]
    return ends


def test_jumps_end_where_single_steps_end() -> None:
    arrivals = {"0.0": (0.0, 700), "0.1": (0.0, 50), "1.0": (0.0, 400), "1.1": (1.0, 900), "2.0": (30.0, 10)}
    alone = Alone()
    for name, (moment, tokens) in arrivals.items():
        alone.clock.at(moment, lambda name=name, tokens=tokens: alone.instance.submit(row(name, tokens)))
    alone.clock.run()
    expected = step_by_step(arrivals)
    assert alone.ends.keys() == expected.keys()
    for name, moment in expected.items():
        assert alone.ends[name] == pytest.approx(moment, abs=2 * 0.005), (
            name
        )  # two steps: fractions of one count


def test_steps_and_seconds_are_inverse() -> None:
    for steps in (0.0, 0.3, 1000.0, 1e6):
        for longer in (0.0, 1e-9, 1e-5):
            assert steps_in(seconds_for(steps, 5e-3, longer), 5e-3, longer) == pytest.approx(steps)


def test_without_room_the_last_row_is_put_back_computed_again_and_still_ends() -> None:
    roomy, tight = Alone(), Alone(kv_tokens=2500)
    for alone in (roomy, tight):
        for name in ("0.0", "0.1", "0.2"):
            alone.instance.submit(row(name, 1000))
        alone.clock.run()
        assert alone.ends.keys() == {"0.0", "0.1", "0.2"}
    assert roomy.instance.preemptions == 0
    # Three rows of 100 + n fill 2500 at n = 733; the last waits at the front until another ends.
    assert tight.instance.preemptions == 1
    assert tight.instance.computed_again == pytest.approx(833, abs=2)
    assert tight.ends["0.2"] > tight.ends["0.0"] + 200 * COST.fixed
    assert roomy.ends["0.2"] == pytest.approx(roomy.ends["0.0"])


def test_rows_beyond_the_limit_wait_in_line() -> None:
    alone = Alone(max_running=2)
    for number, tokens in enumerate((100, 400, 100, 100)):
        alone.instance.submit(row(f"0.{number}", tokens))
    alone.clock.run()
    assert [*alone.ends] == ["0.0", "0.2", "0.3", "0.1"]
    assert max(rows for _, rows in alone.instance.history) == 2


def test_a_cancelled_row_leaves_its_room_and_its_time_is_booked() -> None:
    alone = Alone()
    alone.instance.submit(row("0.0", 1000))
    alone.instance.submit(row("0.1", 1000))
    alone.clock.at(1.0, lambda: alone.instance.cancel("0.1"))
    alone.clock.at(1.0, lambda: alone.instance.cancel("9.9"))
    alone.clock.run()
    assert alone.ends.keys() == {"0.0"}
    assert alone.spent["0.1"] == pytest.approx(0.5)  # a second, shared by two
    assert alone.spent["0.0"] == pytest.approx(alone.ends["0.0"] - 0.5)
    assert alone.instance.busy_seconds == pytest.approx(sum(alone.spent.values()))


# The whole step.


@pytest.mark.parametrize("policy", ["group", "fifo", "context", "oracle"])
@pytest.mark.parametrize("speculation", [None, {}])
def test_every_token_of_every_sample_is_drawn_once(policy: str, speculation: dict[str, Any] | None) -> None:
    simulation = small(rollout={"policy": policy}, speculation=speculation)
    result = simulate(simulation)[0]
    problems = Problems(simulation.workload, seed=0, step=0)
    assert result.tokens == sum(sum(problems[group].lengths) for group in range(20))
    assert 0 <= result.idle_ratio < 1
    for history in result.history.values():
        assert all(before[0] <= after[0] for before, after in pairwise(history))
        assert history[-1][1] == 0
    if policy == "group":
        assert result.migrations == 0 and result.decisions == 80
    else:
        assert result.preemptions == 0 and result.decisions > 80


def test_the_same_simulation_gives_the_same_result() -> None:
    assert run_one() == run_one()
    assert run_one(seed=1).seconds != run_one().seconds


def test_dividing_shortens_the_tail_of_whole_groups() -> None:
    crowded = {"groups": 60, "samples": 8}
    whole = run_one(workload=crowded, rollout={"policy": "group"})
    divided = run_one(workload=crowded)
    assert whole.preemptions > 0 and whole.idle_ratio > 0.1
    assert divided.seconds < whole.seconds
    assert divided.tail_seconds < whole.tail_seconds
    assert divided.idle_ratio < whole.idle_ratio


def test_drafts_shorten_a_step_and_no_sample() -> None:
    plain, drafted = run_one(), run_one(speculation={})
    assert drafted.tokens == plain.tokens
    assert plain.seconds / 2.6 < drafted.seconds < plain.seconds / 1.2  # at most what is accepted


def test_tail_is_the_time_of_the_last_tenth() -> None:
    # One instance, all alike, no room for two: requests end one after the other, at equal distances.
    result = run_one(
        cluster={"instances": 1, "max_running": 1},
        workload={"groups": 20, "samples": 1, "mean_tokens": 999, "max_tokens": 1000, "correlation": 0.0},
        rollout={"chunk_tokens": 1000},
    )
    assert result.tail_seconds == pytest.approx(result.seconds / 10, rel=0.02)


def test_a_slow_link_makes_migration_cost_something() -> None:
    crowded = {"groups": 60, "samples": 8}
    fast, slow = (
        run_one(cluster={"migration_gb_per_second": speed}, workload=crowded) for speed in (50.0, 0.001)
    )
    assert fast.migrations > 0
    assert slow.seconds > 1.2 * fast.seconds


def test_an_instance_that_is_lost_loses_and_doubles_nothing() -> None:
    work = Workload(groups=30, samples=4, mean_tokens=600, max_tokens=2000, prompt_tokens=50)
    problems, clock, ends = Problems(work, seed=0, step=0), VirtualClock(), []
    scheduler = Scheduler(build_policy("context"), chunk_tokens=256)
    cluster = Cluster(
        scheduler,
        problems,
        clock,
        lambda ask: ends.append(ask.id),
        migration_seconds_per_token=1e-5,
        drafting=False,
    )
    for number in range(3):
        cluster.add(
            SimulatedInstance(
                f"i{number}",
                kv_tokens=20_000,
                max_running=16,
                cost=COST,
                gain=None,
                clock=clock,
                report=cluster.chunk_ended,
                spent=cluster.spent,
            )
        )
    for group in range(30):
        cluster.launch(group)
    clock.at(3.0, lambda: cluster.lose("i1"))
    clock.at(4.0, lambda: cluster.lose("i0"))
    clock.run()
    assert sorted(ends) == sorted(f"{group}.{sample}" for group in range(30) for sample in range(4))
    assert cluster.tally.tokens == sum(sum(problems[group].lengths) for group in range(30))


def test_a_group_cancelled_while_it_travels_never_arrives() -> None:
    work = Workload(groups=1, samples=1, mean_tokens=600, max_tokens=2000, correlation=0)
    problems, clock, ends = Problems(work, seed=0, step=0), VirtualClock(), []
    cluster = Cluster(
        Scheduler(build_policy("fifo"), chunk_tokens=100),
        problems,
        clock,
        lambda ask: ends.append((ask.id, clock.now())),
        migration_seconds_per_token=1.0,  # minutes
        drafting=False,
    )
    assert problems[0].lengths[0] > 200

    def add(name: str, kv_tokens: int) -> None:
        instance = SimulatedInstance(
            name,
            kv_tokens=kv_tokens,
            max_running=4,
            cost=COST,
            gain=None,
            clock=clock,
            report=cluster.chunk_ended,
            spent=cluster.spent,
        )
        cluster.add(instance)

    add("small", 4000)
    cluster.launch(0)
    clock.at(0.1, lambda: add("large", 8000))  # the second chunk goes there, and is long on its way
    clock.at(60.0, lambda: cluster.cancel([0]))
    clock.run()
    assert cluster.tally.migrations == 1
    assert ends == [] and clock.now() > 600
    assert [instance.history[-1][1] for instance in cluster.instances.values()] == [0, 0]
    assert cluster.scheduler.free_tokens == {"small": 3960, "large": 7920}


# Launching and closing.

DYNAMIC = {"groups": 12, "samples": 4, "mean_tokens": 600, "max_tokens": 2000, "valid_share": 0.4}
SLOW_JUDGE = {"quick_seconds": 0.2}
NAIVE = {"launches": "rounds", "grading": "after-all", "graders": 1}


def test_seamless_takes_the_first_valid_groups_in_launch_order_and_cancels_later_ones() -> None:
    simulation = small(workload=DYNAMIC, step={"launches": "continuous"}, rollout={"policy": "fifo"})
    result = simulate(simulation)[0]
    problems = Problems(simulation.workload, seed=0, step=0)
    valid = [group for group in range(result.launched_groups) if problems[group].outcome.valid]
    assert result.chosen == 12
    assert result.waste_ratio <= (len(valid) - 12) / 12
    patient = run_one(
        workload=DYNAMIC,
        step={"launches": "continuous", "early_termination": False},
        rollout={"policy": "fifo"},
    )
    assert patient.cancelled_groups == 0
    assert patient.seconds >= result.seconds
    assert patient.launched_groups >= result.launched_groups


def test_naive_rounds_launch_what_is_wanted_until_enough_are_valid() -> None:
    simulation = small(workload=DYNAMIC, step=NAIVE)
    result = simulate(simulation)[0]
    problems = Problems(simulation.workload, seed=0, step=0)
    valid = np.cumsum([problems[group].outcome.valid for group in range(120)])
    rounds = next(count for count in range(1, 11) if valid[12 * count - 1] >= 12)
    assert rounds > 1
    assert result.launched_groups == 12 * rounds
    assert result.waste_ratio == pytest.approx((valid[12 * rounds - 1] - 12) / 12)


def test_rounds_that_find_nothing_end_at_the_cap() -> None:
    rounds = Rounds(wanted=2, cap=4)
    for group in range(4):
        assert rounds.closing() is None
        if group % 2 == 0:
            assert rounds.next_launches() == 2
            rounds.launched(group)
            rounds.launched(group + 1)
        assert rounds.next_launches() == 0
        rounds.scored(group, Outcome(valid=False))
    closing = rounds.closing()
    assert closing is not None and closing.chosen == ()


def test_grading_after_all_comes_on_top_and_grading_meanwhile_does_not() -> None:
    work = {"groups": 10, "samples": 4, "grading": SLOW_JUDGE}
    naive = run_one(workload=work, step={"grading": "after-all", "graders": 1})
    streamed = run_one(workload=work, step={"graders": 40})
    assert naive.seconds == pytest.approx(naive.drawing_seconds + 40 * 0.2)
    assert streamed.seconds == pytest.approx(streamed.drawing_seconds + 0.2)
    assert naive.drawing_seconds == pytest.approx(streamed.drawing_seconds)
    assert naive.idle_ratio > streamed.idle_ratio


def test_graders_work_side_by_side_in_order() -> None:
    clock, seen = VirtualClock(), []
    graders = Graders(2, clock)
    for name, seconds in (("a", 3.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)):
        graders.submit(seconds, lambda name=name: seen.append((name, clock.now())))
    clock.run()
    assert seen == [("b", 1.0), ("c", 2.0), ("a", 3.0), ("d", 3.0)]


def test_work_on_cancelled_groups_counts_as_idle() -> None:
    results = [
        simulate(small(seed=seed, workload=DYNAMIC, step={"launches": "continuous"}))[0] for seed in range(20)
    ]
    cut = next(result for result in results if result.cancelled_groups)
    busy = sum(
        after[0] - before[0]
        for history in cut.history.values()
        for before, after in pairwise([*history, (cut.seconds, 0)])
        if before[1]
    )
    assert cut.idle_ratio > 1 - busy / (cut.seconds * len(cut.history))


# What comes out.


def test_the_picture_holds_all_row_seconds() -> None:
    result = run_one()
    names = [*result.history]
    edges = np.linspace(0, result.seconds, 51)
    rows = rows_over_time([result], names, edges)
    for place, name in enumerate(names):
        exact = sum(
            before[1] * (after[0] - before[0])
            for before, after in pairwise([*result.history[name], (result.seconds, 0)])
        )
        assert (rows[place] * np.diff(edges)).sum() == pytest.approx(exact)


def test_summaries_add_up_over_steps() -> None:
    simulation = small(steps=3)
    results = simulate(simulation)
    summary = summarize(simulation, results)
    assert summary["seconds"] == pytest.approx(sum(result.seconds for result in results))
    assert len({result.seconds for result in results}) == 3
    json.dumps(summary)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "recipes/simulate").glob("*.toml")), ids=lambda file: file.stem
)
def test_shipped_simulations_load_and_run_when_made_small(file: Path) -> None:
    full = load_simulation(file, [f"cluster.costs={TABLE}"])
    assert full.name == file.stem
    tiny = load_simulation(
        file, [f"cluster.costs={TABLE}", "cluster.instances=2", "workload.groups=6", "steps=1"]
    )
    (result,) = simulate(tiny)
    assert result.chosen == 6


def test_mistakes_are_told_in_the_words_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[cluster]\ninstances = 2\ncrad = 'H20'\n[workload]\ngroups = 2\n")
    with pytest.raises(RecipeError) as caught:
        load_simulation(file, ["rollout.policy=longest"])
    message = str(caught.value)
    assert "cluster.crad: unknown key; the nearest is cluster.card" in message
    assert "workload.samples" in message
    assert "rollout.policy must be one of" in message


def test_what_cannot_fit_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        ValueError, match=r"leaves no room for one request of 2,050 tokens.*cards_per_instance"
    ):
        small(cluster={"weight_gb": 126.8})
    with pytest.raises(ValueError, match="mean_tokens 2000 is not below"):
        small(workload={"mean_tokens": 2000})


def test_the_command_writes_numbers_and_a_picture(foresail: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        f"[cluster]\ninstances = 2\ncosts = '{TABLE}'\n"
        "[workload]\ngroups = 4\nsamples = 2\nmean_tokens = 100\nmax_tokens = 500\n"
    )
    done = foresail.run("simulate", file, "name=mine", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "throughput" in done.out and "tail" in done.out
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["name"] == "mine" and summary["chosen"] == 4
    assert (tmp_path / "out/gantt.png").read_bytes().startswith(b"\x89PNG")
    assert foresail.run("simulate", file, "cluster.costs=gone.json").err.startswith(
        "error: the table of step costs"
    )
