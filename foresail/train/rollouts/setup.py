"""The setup of a stage that samples: problems, rewards, and engines over the session's weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from foresail.agents.build import Episodes, turn_sampling
from foresail.agents.programs.build import ProgramEpisodes
from foresail.data.mixtures.mixture import describe_dropped, mix_problems
from foresail.data.mixtures.reader import Reader
from foresail.data.problems.prompts import PromptedProblem
from foresail.data.selection.selection import check_supply, name_sources
from foresail.data.selection.supply import Supply, open_supply
from foresail.recipe.stages.rollout_stage import Sampled
from foresail.recipe.tables.sources import as_graded, reward_for
from foresail.records import Group, Problem
from foresail.rewards.by_source import RewardsBySource
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec, specify_groups
from foresail.rollout.leftovers import Leftovers
from foresail.rollout.requirements import require
from foresail.rollout.stream import Stream, StreamKind
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.fingerprints import describe_problem, fingerprint_data
from foresail.train.rollouts.engine_copy import engine_model, is_streamed, open_copy, stream_weights
from foresail.train.rollouts.held_out import HeldOutSet, load_held_out
from foresail.train.rollouts.rewards import Gradings
from foresail.train.session import Session
from foresail.train.trainer import Trainer

CheckProblem = Callable[[Problem, Tokenizer], None]


def accept(problem: Problem, tokenizer: Tokenizer) -> None:
    """A `check_problem` that accepts every problem."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What sampling needs besides the session."""

    problems: list[PromptedProblem]
    num_dropped: int  # too long
    supply: Supply
    held_out: list[HeldOutSet]
    fleet: Fleet
    rewards: RewardsBySource
    group_spec: GroupSpec
    episodes: Episodes | ProgramEpisodes | None  # where samples have several turns
    stream: StreamKind
    usable: Callable[[Group], bool]  # whether a group can be learned from
    leftovers: Leftovers | None

    def take_figures(self) -> dict[str, float]:
        """Metrics of engines and environments since the last call."""
        environments = {} if self.episodes is None else self.episodes.figures.take()
        return self.fleet.take_figures() | environments


def prepare(
    session: Session[Sampled],
    gradings: Gradings,
    episodes: Episodes | ProgramEpisodes | None,
    reader: Reader | None,
    open_models: Callable[[Trainer[Sampled]], None],
    usable: Callable[[Group], bool],
    check_problem: CheckProblem,
) -> Setup:
    """`reader` may have read the data already; `open_models` opens those besides the policy."""
    recipe = session.recipe
    own_reader = Reader(session.tokenizer) if episodes is None else episodes.reader(session.tokenizer)
    reader = reader if reader is not None and reader.encodes_alike(own_reader) else own_reader
    tokenizer = session.tokenizer = own_reader.tokenizer
    sources = [as_graded(source, recipe.reward) for source in recipe.data]
    mixture = mix_problems(sources, reader, recipe.max_prompt_tokens)
    problems = mixture.entries
    if mixture.dropped:
        limit = f"max_prompt_tokens {recipe.max_prompt_tokens}"
        session.display.note(describe_dropped(mixture.dropped, limit), style="yellow")
    check_supply(problems, recipe)
    check_problem(problems[0].problem, tokenizer)
    texts = map(describe_problem, problems)
    session.progress = fingerprint_data(
        session.progress, f"data.source {name_sources(recipe)}", "problems", texts
    )
    session.on_all_ranks(open_models)
    session.on_all_ranks(open_copy)
    max_length, sampling = recipe.max_length, turn_sampling(recipe.sampling, episodes)
    reads_text = sampling.reads_text or (episodes is not None and episodes.names_stops)
    fleet = build_fleet(
        engine_model(session),
        recipe.engine_settings,
        recipe.rollout,
        max_length=max_length,
        vocabulary=tokenizer.token_bytes() if reads_text else (),
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
        group_spec=specify_groups(
            tokenizer, sampling, recipe.samples_per_prompt, seed=recipe.run.seed, step=0
        ),
        episodes=episodes,
        stream=Stream if episodes is None else episodes.stream(tokenizer, max_length),
        usable=usable,
        leftovers={} if recipe.dynamic_sampling.carry else None,
    )
