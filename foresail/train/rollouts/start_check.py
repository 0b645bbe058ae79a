"""Before the first step of a stage that samples: self-tests, a trial of an agent's program, held-out accuracy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from foresail.agents.programs.build import ProgramEpisodes
from foresail.recipe.stages.rollout_stage import Sampled
from foresail.records import FAILURES, RunStopped, TrainSequence
from foresail.rollout.collect import NoSignal, collect
from foresail.rollout.controller import Controller
from foresail.train.rollouts.engine_copy import engine_model, first_layer, is_streamed
from foresail.train.rollouts.log import log_timeline
from foresail.train.rollouts.measure import measure
from foresail.train.rollouts.rewards import report_prints
from foresail.train.rollouts.sample_groups import update_engines
from foresail.train.rollouts.self_test import check_logprobs, check_save, self_test
from foresail.train.rollouts.setup import Setup
from foresail.train.session import Session
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer

TRIAL_EPISODES = 2


def check_start(session: Session[Sampled], setup: Setup) -> None:
    """Self-tests at every start; a fresh run also logs, as step 0, how good the model is before."""
    session.display.begin("self-test")
    folder, streamed = session.run.path, is_streamed(session)
    differences = self_test(
        session.on_all_ranks(first_layer) if streamed else engine_model(session),
        session.tokenizer,
        setup.fleet,
        setup.problems,
        setup.group_spec,
        folder,
        trained=lambda sequences, temperature: session.on_all_ranks(check_policy, sequences, temperature),
        saved=(lambda sequences: session.on_all_ranks(check_saved, sequences, folder)) if streamed else None,
    )
    session.display.note(
        "self-tests passed: " + ", ".join(f"{name} {differences[name]:.1e}" for name in differences)
    )
    if session.saved is None:
        if isinstance(setup.episodes, ProgramEpisodes):
            try_program(session, setup)
        watch, before = Stopwatch(), {}
        if session.recipe.eval_every:
            with watch("eval"):
                before = measure(session, setup, 0)
        log_timeline(session, 0, watch, setup.fleet.event_log.take())
        session.log_start(differences | before)
    report_prints(session, setup.rewards.gradings)


def try_program(session: Session[Sampled], setup: Setup) -> None:
    """Two episodes of the first problem: a program that cannot work fails here, and not after a whole rollout."""
    session.display.begin("trying the program")
    update_engines(session, setup.fleet, session.progress.step)
    with setup.fleet.at_work():
        try:
            collected = collect(
                setup.fleet,
                lambda launch: setup.problems[0],
                replace(setup.group_spec, num_samples=TRIAL_EPISODES),
                setup.rewards.judge,
                judge_group=setup.rewards.judge_group,
                controller=Controller.for_all(1),
                usable=lambda group: True,
                stream=setup.stream,
            )
        except NoSignal as stopped:
            collected = stopped.collected
    setup.take_figures()  # reset: they belong to no training step
    setup.fleet.event_log.take()
    verdicts = [verdict for group in collected.launched for verdict in group.verdicts]
    if all(verdict.status in FAILURES for verdict in verdicts):
        raise RunStopped(
            f"{TRIAL_EPISODES} episodes of problem {setup.problems[0].problem.id} were tried before the first "
            f"step, and all failed: {verdicts[0].status}: {verdicts[0].detail}; "
            "correct the program, or what it asks for"
        )


def check_policy(trainer: Trainer[Sampled], sequences: list[TrainSequence], temperature: float) -> float:
    """Compare engines with the trained model, which may be sharded over ranks."""
    return check_logprobs(trainer.policy.model, sequences, temperature)


def check_saved(trainer: Trainer[Sampled], sequences: list[TrainSequence], folder: Path) -> float:
    return check_save(trainer.policy.model, trainer.tokenizer, sequences, folder, trainer.world)
