"""Reinforcement learning with verifiable rewards, strictly on-policy between steps.

    problems -> n samples each -> verdicts -> advantages -> packed batches -> updates -> the same weights
    serve the next step

GRPO without a KL term, token-mean loss, clip-higher and dynamic sampling by default; the recipe changes each.
Old log-probabilities come from the engine. The update is in `policy_update.py`; a critic, with a recipe that asks
for one, in `critic.py`. With `rollout.staleness = 1` a rollout runs beside the update before it (`ahead.py`).

    foresail rl recipes/rl-arithmetic.toml
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from foresail.agents.build import Episodes, open_episodes, turn_sampling
from foresail.agents.programs.build import ProgramEpisodes
from foresail.data.mixture import describe_dropped, mix_problems
from foresail.data.prompts import PromptedProblem
from foresail.data.reader import Reader
from foresail.data.selection.selection import (
    check_supply,
    describe_selection,
    name_sources,
    open_selection,
)
from foresail.data.selection.supply import Supply, open_supply
from foresail.model.decoder import Decoder
from foresail.model.determinism import deterministic
from foresail.model.hf import check_vocabulary
from foresail.model.linear import batch_invariant
from foresail.model.lora import base_of
from foresail.recipe import parts
from foresail.recipe.curriculum import steps_left
from foresail.recipe.rl import Rl
from foresail.recipe.sources import reward_for
from foresail.records import RunStopped, TrainSequence
from foresail.rewards.by_source import RewardsBySource
from foresail.rewards.thinking import describe_thinking, open_counter, read_thought
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.build import build_fleet
from foresail.rollout.collect import Collected, NoSignal, collect, gradable, teaches
from foresail.rollout.controller import Controller
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.leftovers import CarryingStream, Leftovers
from foresail.rollout.requirements import require
from foresail.rollout.stream import Stream, StreamKind, nap, watched
from foresail.runlog.phase import Phase
from foresail.runlog.samples import sample_lines
from foresail.train.ahead import InTurns, OneAhead, Rollouts
from foresail.train.checkpoint import Progress
from foresail.train.critic import open_critic
from foresail.train.engine_copy import (
    engine_model,
    first_layer,
    is_streamed,
    open_copy,
    refresh_copy,
    stream_weights,
)
from foresail.train.fingerprints import describe_problem, same_data, same_reference
from foresail.train.flops import PeakMemory, describe_pace
from foresail.train.held_out import HeldOutSet, held_out_accuracy, load_held_out
from foresail.train.launch import open_ranks, placed
from foresail.train.learner import Learner, arrangement
from foresail.train.policy_update import update_policy
from foresail.train.rl_metrics import describe_collected, rollout_rows
from foresail.train.rolled_out import RolledOut, find_rolled_out
from foresail.train.run_rewards import Gradings, keep_rewards, open_rewards, tell_of_prints
from foresail.train.selftest import check_logprobs, check_save, self_test
from foresail.train.session import Outcome, Session
from foresail.train.starting_point import open_model
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.turn_credit import Credits, check_hint


def run_rl(
    recipe: Rl, *, resume: bool = False, changed_reward: bool = False, reader: Reader | None = None
) -> Outcome:
    """`changed_reward`: go on although the file of a reward function is not as it was. `reader`: has some of the
    data already."""
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_rewards(recipe) as gradings,
        open_episodes(recipe.environment) as episodes,
        batch_invariant(recipe.engine.batch_invariant),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        keep_rewards(session, gradings, changed=changed_reward)
        session.display.begin("reading the data")
        setup = prepare(session, gradings, episodes, reader)
        with closing(setup.fleet):
            check_start(session, setup)
            rollouts = open_rollouts(session, setup, anew=changed_reward)
            memory = PeakMemory(session.device)
            for step in session.steps():
                watch = Stopwatch()
                rolled = take_rollout(session, rollouts, watch)
                collected = rolled.collected
                if not collected.launched:
                    end_early(session, step)
                    continue
                memory.note(beside=setup.fleet.cache_bytes)
                if not collected.chosen:
                    log_rollouts(session, step, collected)
                    log_timeline(session, step, watch, rolled.events)
                    leave_stage(session, step)
                    continue
                progress = replace(session.progress, **rolled.changes)
                with rollouts.beside_update(progress), watch("update"):
                    metrics, credits = session.everywhere(
                        update_policy, collected.chosen, step + session.progress.ahead
                    )
                memory.note()
                metrics |= describe_collected(
                    collected, rollout_seconds=watch.seconds["rollout"], step_seconds=watch.total
                )
                metrics |= describe_thinking(open_counter(session.tokenizer), collected.launched)
                metrics |= {**rolled.figures, **rollouts.take_figures()}
                tflop, seconds = metrics.get("perf/update_tflop", 0.0), watch.seconds["update"]
                metrics |= describe_pace(session.device, tflop / world.size, seconds) | memory.metrics()
                metrics |= describe_selection(collected.launched, progress, recipe)
                metrics |= {"data/dropped": setup.num_dropped} if setup.num_dropped else {}
                if recipe.eval_every and step % recipe.eval_every == 0:
                    with watch("eval"):
                        metrics |= measure(session, setup, step)
                log_rollouts(session, step, collected, credits)
                log_timeline(session, step, watch, [*rolled.events, *setup.fleet.event_log.take()])
                session.end_step(progress, metrics | watch.metrics())
                tell_of_prints(session, gradings)
    return session.outcome


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the loop works with besides the session: problems, engines over the session's own weights, …"""

    problems: list[PromptedProblem]
    num_dropped: int  # too long
    supply: Supply
    held_out: list[HeldOutSet]
    fleet: Fleet
    rewards: RewardsBySource
    group_spec: GroupSpec
    episodes: Episodes | ProgramEpisodes | None  # where samples have several turns
    stream: StreamKind
    leftovers: Leftovers | None

    def take_figures(self) -> dict[str, float]:
        """Metrics of engines and environments since the last call."""
        environments = {} if self.episodes is None else self.episodes.figures.take()
        return self.fleet.take_figures() | environments


def prepare(
    session: Session[Rl],
    gradings: Gradings,
    episodes: Episodes | ProgramEpisodes | None,
    reader: Reader | None,
) -> Setup:
    """`reader` has read the data already, perhaps."""
    recipe = session.recipe
    told = Reader(session.tokenizer) if episodes is None else episodes.reader(session.tokenizer)
    reader = reader if reader is not None and reader.says_the_same(told) else told
    tokenizer = session.tokenizer = told.tokenizer
    mixture = mix_problems(recipe.data, reader, recipe.max_prompt_tokens)
    problems = mixture.entries
    if mixture.dropped:
        limit = f"max_prompt_tokens {recipe.max_prompt_tokens}"
        session.display.note(describe_dropped(mixture.dropped, limit), style="yellow")
    check_supply(problems, recipe)
    check_hint(recipe.credit, problems[0].problem, tokenizer)
    texts = map(describe_problem, problems)
    session.progress = same_data(session.progress, f"data.source {name_sources(recipe)}", "problems", texts)
    session.everywhere(open_other_models)
    max_length, sampling = recipe.max_length, turn_sampling(recipe.sampling, episodes)
    fleet = build_fleet(
        engine_model(session),
        recipe.engine_settings,
        recipe.rollout,
        max_length=max_length,
        vocabulary=tokenizer.token_bytes()
        if sampling.reads_text or (episodes and episodes.names_stops)
        else (),
        cluster=recipe.cluster,
        logs=(session.run.path / "logs").absolute(),
        stream=partial(stream_weights, session) if is_streamed(session) else None,
    )
    needs = {"keyed_noise": recipe.run.deterministic, "logprobs": True}
    require(fleet.instances.values(), needs | {"forcing": sampling.thinking_budget is not None})
    return Setup(
        problems=problems,
        num_dropped=sum(mixture.dropped.values()),
        supply=open_supply(
            mixture.datasets,
            [entry.problem.level for entry in problems],
            recipe.data,
        ),
        held_out=load_held_out(recipe, reader, gradings) if recipe.eval_every else [],
        fleet=fleet,
        rewards=RewardsBySource(
            settings={source.label: reward_for(source, recipe.reward) for source in recipe.data},
            gradings=gradings,
            tokenizer=tokenizer,
        ),
        group_spec=GroupSpec(
            sampling=sampling,
            num_samples=recipe.samples_per_prompt,
            stop_ids=session.tokenizer.eos_ids,
            closing=tokenizer.encode_closing(sampling.thinking_budget, sampling.thinking_end),
            seed=recipe.run.seed,
            step=0,
        ),
        episodes=episodes,
        stream=Stream if episodes is None else episodes.stream(tokenizer, max_length),
        leftovers={} if recipe.dynamic_sampling.carry else None,
    )


def check_start(session: Session[Rl], setup: Setup) -> None:
    """Self-tests at every start; a fresh run also logs, as step 0, how good the model is before."""
    session.display.begin("self-test")
    folder, streamed = session.run.path, is_streamed(session)
    found = self_test(
        session.everywhere(first_layer) if streamed else engine_model(session),
        session.tokenizer,
        setup.fleet,
        setup.problems,
        setup.group_spec,
        folder,
        trained=lambda sequences, temperature: session.everywhere(check_policy, sequences, temperature),
        saved=(lambda sequences: session.everywhere(check_saved, sequences, folder)) if streamed else None,
    )
    session.display.note("self-tests passed: " + ", ".join(f"{name} {found[name]:.1e}" for name in found))
    if session.saved is None:
        watch, before = Stopwatch(), {}
        if session.recipe.eval_every:
            with watch("eval"):
                before = measure(session, setup, 0)
        log_timeline(session, 0, watch, setup.fleet.event_log.take())
        session.log(0, found | before)
    tell_of_prints(session, setup.rewards.gradings)


def check_policy(trainer: Trainer[Rl], sequences: list[TrainSequence], temperature: float) -> float:
    """Engines against the model that is trained, which several ranks may have together."""
    return check_logprobs(trainer.policy.model, sequences, temperature)


def check_saved(trainer: Trainer[Rl], sequences: list[TrainSequence], folder: Path) -> float:
    return check_save(trainer.policy.model, trainer.tokenizer, sequences, folder, trainer.world)


def open_other_models(trainer: Trainer[Rl]) -> None:
    """Besides the policy, on every rank: what a loss pulls towards, a critic, and a copy for the engines."""
    trainer.reference, trainer.critic = open_reference(trainer), open_critic(trainer)
    open_copy(trainer)


def open_reference(trainer: Trainer[Rl]) -> Decoder | None:
    """What the loss pulls towards: the starting model, which with LoRA is still there, or another one."""
    recipe = trainer.recipe
    if recipe.loss.kl_weight == 0:
        return None
    path, start = recipe.loss.reference, recipe.model
    if path is not None:
        start = start.model_copy(update={"path": path, "shape": None})
    if recipe.lora is not None and path is None:
        model = base_of(trainer.policy.model)
    else:
        model = open_model(
            start.without_mtp(),
            seed=recipe.run.seed,
            device=trainer.device,
            max_length=recipe.max_length,
            arrange=arrangement(None, trainer.world),
        )
        check_vocabulary(model.shape, trainer.tokenizer.vocab_size)
        trainer.progress = same_reference(
            trainer.progress, path or recipe.model.path, model.requires_grad_(False)
        )
    trainer.learners["reference"] = Learner(name="reference", model=model)
    return model


# From problems to judged groups.


def open_rollouts(session: Session[Rl], setup: Setup, *, anew: bool) -> Rollouts:
    """`anew`: rewards are not as they were, so what a checkpoint holds of the next step is drawn again."""
    in_turns = InTurns(
        partial(roll_out, session.recipe, setup),
        partial(update_engines, session, setup.fleet),
        session.display,
    )
    if not session.recipe.rollout.staleness:
        return in_turns
    drawn = find_rolled_out(session.start, {entry.problem.id: entry.problem for entry in setup.problems})
    if drawn is not None and anew:
        session.display.note(f"the samples of step {session.progress.step + 1} are drawn and judged anew")
        drawn = None
    ahead = OneAhead(in_turns, last_step=session.recipe.steps, drawn=drawn)
    session.also_save.append(ahead.save)
    return ahead


def take_rollout(session: Session[Rl], rollouts: Rollouts, watch: Stopwatch) -> RolledOut:
    try:
        return rollouts.take(session.progress, watch)
    except NoSignal as stopped:
        log_rollouts(session, session.progress.step + 1, stopped.collected)
        if session.progress.step:  # else nothing was learned, and the folder may be used again
            session.save()
        raise


def roll_out(
    run: Rl, setup: Setup, before: Progress, *, begin: Callable[[int], Phase], wait: Callable[[], None] = nap
) -> RolledOut:
    """Generate and judge until there are enough groups to learn from, with the weights that engines have.

    With it comes where the next step goes on: that follows from the groups up to the one that closed the
    step, whatever else was under way.
    """
    start, step = time.time(), before.step + 1
    recipe = run.at(step + before.ahead)  # the curriculum's stage
    settings = recipe.dynamic_sampling
    selection = open_selection(before, recipe, setup.supply)
    ids = [entry.problem.id for entry in setup.problems]
    lineup = selection.line_up(ids, seed=recipe.run.seed, step=step)
    if len(lineup) < recipe.prompts_per_step:  # each source was passed as often as it may be
        nothing = Collected(launched=(), chosen=())
        return RolledOut(collected=nothing, changes={}, figures={}, events=[], start=start, end=start)
    phase = begin(recipe.samples_per_step)
    with setup.fleet.at_work():
        collected = collect(
            setup.fleet,
            lambda launch: setup.problems[lineup.pick(launch)],
            replace(setup.group_spec, step=step, sampling=turn_sampling(recipe.sampling, setup.episodes)),
            watched(setup.rewards.judge, phase.advance),
            judge_group=setup.rewards.judge_group,
            controller=build_controller(settings, recipe.prompts_per_step, len(lineup), before.share),
            usable=teaches if settings.enabled else gradable,
            rewards_of=partial(setup.rewards.reward, limit=recipe.sampling.max_new_tokens),
            wait=wait,
            stream=setup.stream
            if setup.leftovers is None
            else partial(CarryingStream, leftovers=setup.leftovers),
        )
    changes = {
        **selection.after(lineup, collected.launched),
        "step": step,
        "updates": before.updates + (0 if step <= recipe.critic_only_steps else recipe.updates_per_step),
        "share": collected.share,
    }
    return RolledOut(
        collected=collected,
        changes=changes,
        figures=setup.take_figures(),
        events=setup.fleet.event_log.take(),
        start=start,
        end=time.time(),
    )


def update_engines(session: Session[Rl], fleet: Fleet, version: int) -> None:
    """Engines read the weights as they are now."""
    session.everywhere(refresh_copy, version)
    fleet.update_weights(version)


def end_early(session: Session[Rl], step: int) -> None:
    """The sources' epochs are over: there is no whole step left."""
    session.display.note(f"data.epochs leaves fewer problems than step {step} needs: the run ends here")
    session.finish()


class NothingToLearn(RunStopped):
    """Before anything was learned: then the grader may well be wrong."""


def leave_stage(session: Session[Rl], step: int) -> None:
    """Every answer was right: the step is done in the curriculum's next stage, or, after the last, not at all."""
    note, ahead = f"every answer of step {step} is right", session.progress.ahead
    left = steps_left(session.recipe.curriculum, step + ahead)
    if left is not None:
        session.display.note(f"{note}: on to the curriculum's next stage, {left + 1} steps early")
        session.progress = replace(session.progress, ahead=ahead + left + 1)
    elif session.progress.step:
        session.display.note(f"{note}: nothing is left to learn here")
        session.finish()
    else:
        raise NothingToLearn(
            f"{note}, and nothing was learned yet; read {session.run.rollout_path(step)}: if the grader accepts "
            "anything, mend it; if the answers are right, bring harder problems"
        )


def build_controller(
    settings: parts.DynamicSampling, wanted: int, num_problems: int, share: float
) -> Controller:
    """Without dynamic sampling the groups that are wanted are all that is launched."""
    if not settings.enabled:
        return Controller.for_all(wanted)
    return Controller(wanted=wanted, cap=min(wanted * settings.max_rounds, num_problems), share_before=share)


def log_rollouts(session: Session[Rl], step: int, collected: Collected, credits: Credits = ()) -> None:
    """Every sample to the log, and now and then two of them to the terminal."""
    counter = open_counter(session.tokenizer)
    thoughts = None if counter is None else partial(read_thought, counter)
    rows = list(rollout_rows(collected, partial(read_trajectory, session.tokenizer), credits, thoughts))
    session.writer.start(partial(session.run.write_rollouts, step, rows))
    every = session.recipe.show_samples
    if every and (step == 1 or step % every == 0):
        session.display.show_samples(step, sample_lines(rows))


def log_timeline(
    session: Session[Rl], step: int, watch: Stopwatch, of_engines: Sequence[Mapping[str, Any]]
) -> None:
    session.run.append_timeline(*({"step": step, **event} for event in [*watch.events, *of_engines]))


# Held-out problems.


def measure(session: Session[Rl], setup: Setup, step: int) -> dict[str, float]:
    num_attempts = sum(held_out.num_attempts for held_out in setup.held_out)
    session.display.begin("evaluation", num_attempts, span=(1.0, 1.0) if step else (0.0, 0.0))
    update_engines(session, setup.fleet, step)
    with setup.fleet.at_work():
        found = held_out_accuracy(
            setup.fleet,
            setup.held_out,
            turn_sampling(session.recipe.sampling, setup.episodes),
            session.recipe.run.seed,
            stream=setup.stream,
            advance=session.display.advance,
        )
    setup.take_figures()  # they are no training step's
    return found
