"""A reward model as a grader: answers as token ids, and their scores as rewards.

    scorer = open_scorer(LearnedReward(path="runs/rm/checkpoints/step_200"), device="auto")
    sequence = scorer.encode(problem, trajectory)
    (score,) = scorer.score([sequence])

If the policy and the reward model share tokenizer and chat template, the sample's own ids are scored. Else the
conversation is tokenised again with the reward model's template.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

import torch

from foresail.data.preferences.scored_pairs import end_with_answer
from foresail.model.decoder import Decoder
from foresail.model.device import choose_device, choose_dtype
from foresail.model.hf import check_vocabulary, load_model
from foresail.model.weights import checksum
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.tables.reward import LearnedReward
from foresail.records import Message, Problem, TrainSequence, Trajectory
from foresail.rewards.group_rewards import IDS_OF
from foresail.rewards.scoring import score_answers
from foresail.tokenizer.tokenizer import Tokenizer


class Ungradable(Exception):
    """Why a reward model cannot read this answer."""


class ScoredIds(NamedTuple):
    """Token ids, and where the answer begins."""

    ids: list[int]
    start: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Scorer:
    """A reward model, its tokenizer, and the scaling of its scores."""

    model: Decoder
    tokenizer: Tokenizer
    settings: LearnedReward

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the weights."""
        return f"{checksum(self.model):016x}"

    def encode(self, problem: Problem, trajectory: Trajectory) -> ScoredIds:
        if problem.extra.get(IDS_OF) == self.tokenizer.fingerprint:
            prompt, answer = list(problem.extra["prompt_ids"]), list(problem.extra["completion_ids"])
            encoded = ScoredIds(prompt + answer, len(prompt))
        else:
            encoded = self.encode_text(problem, trajectory)
        if len(encoded.ids) < 2:
            raise Ungradable("there is nothing to score")
        if len(encoded.ids) > self.model.shape.max_context:
            raise Ungradable(
                f"{len(encoded.ids)} tokens exceed the reward model's context of {self.model.shape.max_context}"
            )
        if max(encoded.ids) >= self.model.shape.vocab_size:
            raise Ungradable(f"the reward model has no token {max(encoded.ids)}")
        return encoded

    def encode_text(self, problem: Problem, trajectory: Trajectory) -> ScoredIds:
        if len(trajectory.turns) > 1:
            raise Ungradable("a reward model with another tokenizer cannot read episodes of several turns")
        answer = Message(role="assistant", content=trajectory.response)
        try:
            ids, mask = self.tokenizer.encode_conversation([*problem.prompt, answer])
        except ValueError as error:
            raise Ungradable(f"its chat template cannot write this conversation: {error}") from error
        ended = end_with_answer(TrainSequence(ids=ids, loss_mask=mask))
        return ScoredIds(ended.ids, ended.loss_mask.index(1))

    def score(self, sequences: Sequence[ScoredIds]) -> list[float]:
        """As they are paid. Where runs are to repeat bit for bit, each sequence is computed alone: how many come at
        once depends on the clock.
        """
        if torch.are_deterministic_algorithms_enabled() and len(sequences) > 1:
            return [score for sequence in sequences for score in self.score([sequence])]
        longest = max(len(sequence.ids) for sequence in sequences)
        scores = score_answers(
            self.model,
            [sequence.ids for sequence in sequences],
            starts=[sequence.start for sequence in sequences],
            max_tokens=max(self.settings.batch_tokens, longest),
        )
        return [self.pay(score) for score in scores]

    def pay(self, score: float) -> float:
        """With mean 1, std 2 and clip 3, a score of 5 is paid 2, one of 11 is paid 3. NaN stays NaN."""
        paid = (score - self.settings.mean) / self.settings.std
        clip = self.settings.clip
        return paid if clip is None or not math.isfinite(paid) else max(-clip, min(clip, paid))


# Open reward models of this process: sources with equal settings share one.
OPEN: WeakValueDictionary[tuple[LearnedReward, str], Scorer] = WeakValueDictionary()


def open_scorer(settings: LearnedReward, *, device: str) -> Scorer:
    if (scorer := OPEN.get((settings, device))) is not None:
        return scorer
    if not read_shape(settings.path).scores:
        raise ValueError(f"{settings.path} is a language model, which gives words and no score")
    place = choose_device(device)
    dtype = choose_dtype(settings.dtype, place)
    model = load_model(settings.path, dtype=dtype, device=place, scores=True).requires_grad_(False)
    tokenizer = Tokenizer.load(settings.path)
    check_vocabulary(model.shape, tokenizer.vocab_size)
    if place.type == "cuda":
        torch.cuda.synchronize(place)  # the grading thread reads the weights on another CUDA stream
    scorer = OPEN[settings, device] = Scorer(model=model, tokenizer=tokenizer, settings=settings)
    return scorer
