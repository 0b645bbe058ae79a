"""Reinforcement learning with verifiable rewards, strictly on-policy between steps.

    problems -> n samples each -> verdicts -> advantages -> packed batches -> updates -> the same weights
    serve the next step

GRPO without a KL term, token-mean loss, clip-higher and dynamic sampling by default; the recipe changes each.
Old log-probabilities come from the engine. A critic, with a recipe that asks for one, is in `critic.py`.

    foresail rl recipes/rl-arithmetic.toml
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import torch
from torch import Tensor

from foresail.algorithms.mismatch import mismatch, per_fresh_token
from foresail.algorithms.policy_loss import policy_loss
from foresail.data.problems import load_problems
from foresail.data.prompts import PromptedProblem, encode_problems
from foresail.engine.engine import Engine, build_engine
from foresail.evaluate.run import Examiner, Judged, evaluate, hand_over, response_text
from foresail.model.decoder import Decoder
from foresail.model.determinism import deterministic
from foresail.model.linear import batch_invariant
from foresail.model.lora import base_of
from foresail.recipe import parts
from foresail.recipe.curriculum import steps_left
from foresail.recipe.stages import Rl
from foresail.records import Group, PackedBatch, Problem, RunStopped, Sample
from foresail.rewards.build import open_grading
from foresail.rewards.grader import reward
from foresail.rewards.grading import Grading
from foresail.rollout.build import build_fleet
from foresail.rollout.collect import (
    Harvest,
    NoSignal,
    collect,
    gradable,
    teaches,
)
from foresail.rollout.controller import Controller
from foresail.rollout.decks import by_level
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import Draw
from foresail.rollout.leftovers import Leftovers
from foresail.runlog.samples import sample_lines
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoint import Progress
from foresail.train.critic import Critic, join, open_critic
from foresail.train.effort import PeakMemory, describe_pace, describe_updates
from foresail.train.origins import describe_problem, same_data, same_reference
from foresail.train.rl_metrics import describe_advantages, describe_harvest, mean_over_updates, rollout_rows
from foresail.train.schedule import learning_rate
from foresail.train.selection import check_supply, describe_selection, open_selection
from foresail.train.selftest import self_test
from foresail.train.session import Outcome, Session
from foresail.train.starting_point import load_model_and_tokenizer
from foresail.train.step import token_logprobs, train_step
from foresail.train.stopwatch import Stopwatch
from foresail.train.updates import compute_advantages, pack_groups, split


def run_rl(recipe: Rl, *, resume: bool = False) -> Outcome:
    with (
        deterministic(recipe.run.deterministic),
        open_grading(recipe.reward) as grading,
        Session(recipe, resume=resume) as session,
        batch_invariant(recipe.engine.batch_invariant),
    ):
        setup = prepare(session, grading, recipe)
        with closing(setup.fleet):
            check_start(session, setup, recipe)
            memory = PeakMemory(session.device)
            for step in session.steps():
                watch, now = Stopwatch(), recipe.at(step + session.progress.ahead)  # the curriculum's stage
                with watch("rollout"):
                    harvest, progress = roll_out(session, setup, now, step)
                memory.note(beside=setup.engine.cache_bytes)
                if not harvest.chosen:
                    log_rollouts(session, step, harvest, recipe)
                    log_timeline(session, step, watch, setup.fleet)
                    setup.fleet.take_figures()  # they are of no step that learns
                    leave_stage(session, recipe, step)
                    continue
                with watch("update"):
                    metrics = reinforce(session, harvest.chosen, setup, now)
                memory.note()
                metrics |= describe_harvest(harvest, watch.seconds) | setup.fleet.take_figures()
                tflop, seconds = metrics.get("perf/update_tflop", 0.0), watch.seconds["update"]
                metrics |= describe_pace(session.device, tflop, seconds) | memory.metrics()
                metrics |= describe_selection(harvest.launched, progress, recipe)
                if recipe.eval_every and step % recipe.eval_every == 0:
                    with watch("eval"):
                        metrics |= held_out_accuracy(session, setup, recipe, step)
                log_rollouts(session, step, harvest, recipe)
                log_timeline(session, step, watch, setup.fleet)
                session.end_step(progress, metrics | watch.metrics())
    return session.outcome


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the loop works with besides the session: problems, the engine over the session's own weights, …"""

    problems: list[PromptedProblem]
    members: dict[int, list[int]]  # of each difficulty level, by their indices
    held_out: list[PromptedProblem]
    engine: Engine
    fleet: Fleet
    grading: Grading
    reference: Decoder | None
    critic: Critic | None
    draw: Draw
    leftovers: Leftovers | None


def prepare(session: Session, grading: Grading, recipe: Rl) -> Setup:
    def load(settings: parts.Problems) -> list[PromptedProblem]:
        return encode_problems(load_problems(settings), session.tokenizer, recipe.max_prompt_tokens)

    problems = load(recipe.data)
    check_supply(problems, recipe)
    texts = map(describe_problem, problems)
    session.progress = same_data(session.progress, f"data.source {recipe.data.source}", "problems", texts)
    engine = build_engine(session.model, recipe.engine_room, max_length=recipe.max_length)
    return Setup(
        problems=problems,
        members=by_level([entry.problem.level for entry in problems]),
        held_out=load(recipe.eval) if recipe.eval else [],
        engine=engine,
        fleet=build_fleet(engine, recipe.rollout, max_length=recipe.max_length),
        grading=grading,
        reference=load_reference(session, recipe),
        critic=open_critic(session, recipe),
        draw=Draw(
            sampling=recipe.sampling,
            num_samples=recipe.samples_per_prompt,
            stop_ids=session.tokenizer.eos_ids,
            seed=recipe.run.seed,
            step=0,
        ),
        leftovers={} if recipe.dynamic_sampling.carry else None,
    )


def check_start(session: Session, setup: Setup, recipe: Rl) -> None:
    """Self-tests at every start; a fresh run also logs, as step 0, how good the model is before."""
    found = self_test(
        session.model, session.tokenizer, setup.engine, setup.problems, setup.draw, session.run.path
    )
    session.display.note("self-tests passed: " + ", ".join(f"{name} {found[name]:.1e}" for name in found))
    if session.saved is None:
        watch, before = Stopwatch(), {}
        if recipe.eval_every:
            with watch("eval"):
                before = held_out_accuracy(session, setup, recipe, 0)
        log_timeline(session, 0, watch, setup.fleet)
        session.log(0, found | before)


def load_reference(session: Session, recipe: Rl) -> Decoder | None:
    """The starting model, when the loss pulls towards it; with LoRA it is still there, under the pairs."""
    if recipe.loss.kl_weight == 0:
        return None
    if recipe.lora is not None:
        return base_of(session.model)
    reference, _ = load_model_and_tokenizer(
        recipe.model, seed=recipe.run.seed, device=session.device, max_length=recipe.max_length
    )
    session.progress = same_reference(session.progress, recipe.model.path, reference)
    return reference.requires_grad_(False)


# From problems to judged groups.


def roll_out(session: Session, setup: Setup, recipe: Rl, step: int) -> tuple[Harvest, Progress]:
    """Draw and judge until there are enough groups to learn from, with the weights as they are now.

    With it comes where the next step goes on: that follows from the groups up to the one that closed the
    step, whatever else was under way.
    """
    settings, progress = recipe.dynamic_sampling, session.progress
    selection = open_selection(progress, recipe, setup.members)
    ids = [entry.problem.id for entry in setup.problems]
    lineup = selection.line_up(ids, seed=recipe.run.seed, step=step)
    setup.fleet.update_weights(progress.step)
    try:
        with setup.engine.at_work():
            harvest = collect(
                setup.fleet,
                lambda launch: setup.problems[lineup.pick(launch)],
                replace(setup.draw, step=step, sampling=recipe.sampling),
                partial(judge, recipe=recipe, tokenizer=session.tokenizer, grading=setup.grading),
                controller=build_controller(settings, recipe.prompts_per_step, len(lineup), progress.share),
                usable=teaches if settings.enabled else gradable,
                leftovers=setup.leftovers,
            )
    except NoSignal as stopped:
        log_rollouts(session, step, stopped.harvest, recipe)
        if session.progress.step:  # else nothing was learned, and the folder may be used again
            session.save()
        raise
    return harvest, replace(
        progress,
        **selection.after(lineup, harvest.launched),
        step=step,
        updates=progress.updates + (0 if step <= recipe.critic_only_steps else recipe.updates_per_step),
        share=harvest.share,
    )


class NothingToLearn(RunStopped):
    """Before anything was learned: then the grader may well be wrong."""


def leave_stage(session: Session, recipe: Rl, step: int) -> None:
    """Every answer was right: the step is done in the curriculum's next stage, or, after the last, not at all."""
    note, ahead = f"every answer of step {step} is right", session.progress.ahead
    left = steps_left(recipe.curriculum, step + ahead)
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


def log_rollouts(session: Session, step: int, harvest: Harvest, recipe: Rl) -> None:
    """Every sample to the log, and now and then two of them to the terminal."""
    rows = list(rollout_rows(harvest, partial(response_text, session.tokenizer)))
    session.scribe.start(partial(session.run.write_rollouts, step, rows))
    if recipe.show_samples and (step == 1 or step % recipe.show_samples == 0):
        session.display.show_samples(step, sample_lines(rows))


def log_timeline(session: Session, step: int, watch: Stopwatch, fleet: Fleet) -> None:
    events = [*watch.events, *fleet.diary.take()]
    session.run.append_timeline(*({"step": step, **event} for event in events))


def judge(problem: Problem, sample: Sample, *, recipe: Rl, tokenizer: Tokenizer, grading: Grading) -> Judged:
    """Hand the response to the grader; what its verdict is worth, the recipe says."""
    text = response_text(tokenizer, sample)
    worth = partial(
        reward,
        settings=recipe.reward,
        prompt="\n".join(message.content for message in problem.prompt),
        response=text,
        num_tokens=sample.num_response_tokens,
        limit=recipe.sampling.max_new_tokens,
    )
    return Judged(hand_over(problem, sample, text, recipe.reward, grading), worth)


# From groups to better weights.


def reinforce(session: Session, groups: Sequence[Group], setup: Setup, recipe: Rl) -> dict[str, float]:
    """The step's optimiser updates, each over its own share of the groups. Metrics are means over updates."""
    model, temperature = session.model, recipe.sampling.temperature
    updates, metrics = weigh(session, groups, setup.critic, recipe)
    if session.progress.step < recipe.critic_only_steps:
        return metrics
    metrics |= describe_updates(updates * recipe.passes_per_step, model.shape, recipe)
    updates = [add_logprobs(batches, model, setup.reference, recipe) for batches in updates]
    total = (recipe.steps - recipe.critic_only_steps) * recipe.updates_per_step
    results = []
    for number, batches in enumerate(updates * recipe.passes_per_step, start=1):
        rate = learning_rate(session.progress.updates + number, total, recipe.optimizer)
        loss = partial(rl_loss, recipe=recipe, on_policy=number == 1)
        step = train_step(
            model, session.optimizer, batches, loss, learning_rate=rate, temperature=temperature
        )
        results.append(step | {"actor/lr": rate})
    metrics |= per_fresh_token(mean_over_updates(results))
    return metrics | {"actor/pg_loss": metrics.pop("actor/loss"), "actor/updates": len(results)}


def weigh(
    session: Session, groups: Sequence[Group], critic: Critic | None, recipe: Rl
) -> tuple[list[list[PackedBatch]], dict[str, float]]:
    """The updates of one pass as packed micro-batches, every token with its advantage: what its sample did better
    than its siblings, or than a critic expected of it, which then learns from the same batches.
    """
    shares = [[groups[i] for i in part] for part in split(len(groups), recipe.parts_per_pass)]
    version = session.progress.step  # of the weights now, as the fleet was told
    if critic is None:
        advantages_GN = compute_advantages(groups, recipe.advantage.kind)
        rows = advantages_GN.split([len(share) for share in shares])
        updates = [
            pack_groups(share, row, recipe, session.device, version=version)
            for share, row in zip(shares, rows, strict=True)
        ]
        return updates, describe_advantages(advantages_GN)
    unweighed = [pack_groups(share, None, recipe, session.device, version=version) for share in shares]
    updates, metrics = critic.appraise(unweighed)
    metrics |= describe_advantages(join(updates, "advantages_M"))
    metrics |= critic.learn(
        updates * recipe.passes_per_step,
        before=session.progress.step * recipe.updates_per_step,
        total=recipe.steps * recipe.updates_per_step,
    )
    return updates, metrics


def add_logprobs(
    batches: list[PackedBatch], model: Decoder, reference: Decoder | None, recipe: Rl
) -> list[PackedBatch]:
    """The micro-batches with what the loss measures the policy against, before any update changes it."""
    temperature = recipe.sampling.temperature
    if recipe.loss.old_logprobs == "trainer":
        batches = [replace(b, old_logprobs_M=logprobs_of(model, b, temperature)) for b in batches]
    if reference is not None:
        batches = [replace(b, ref_logprobs_M=logprobs_of(reference, b, temperature)) for b in batches]
    return batches


def rl_loss(
    logprobs_M: Tensor, batch: PackedBatch, *, recipe: Rl, on_policy: bool
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recipe's loss; before the first update it also measures how far engine and trainer are apart."""
    value, sums = policy_loss(logprobs_M, batch, recipe.loss)
    if on_policy and batch.rollout_logprobs_M is not None:
        sums |= mismatch(logprobs_M, batch.rollout_logprobs_M, batch.fresh_M)
    return value, sums


@torch.no_grad()
def logprobs_of(model: Decoder, batch: PackedBatch, temperature: float) -> Tensor:
    return token_logprobs(model, batch, temperature)[0]


# Held-out problems.


def held_out_accuracy(session: Session, setup: Setup, recipe: Rl, step: int) -> dict[str, float]:
    """Greedy accuracy by source."""
    setup.fleet.update_weights(step)
    with setup.engine.at_work():
        results = evaluate(
            setup.fleet,
            setup.held_out,
            Examiner(tokenizer=session.tokenizer, reward=recipe.reward, grading=setup.grading),
            sampling=recipe.sampling,
            num_samples=0,
            seed=recipe.run.seed,
        )
    setup.fleet.take_figures()  # they are no training step's
    scores: dict[str, list[float]] = {}
    for result in results:
        if result.greedy is not None and not result.greedy.failed:
            scores.setdefault(result.source, []).append(float(result.greedy.correct))
    return {f"val-core/{source}/acc/mean@1": fmean(values) for source, values in scores.items()}
