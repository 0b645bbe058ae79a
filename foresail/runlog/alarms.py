"""Checks a run's metrics for known failures, with advice for each.

Each check maps the run's history, oldest record first, to an alarm or None. It uses means over a few steps, since
single steps are noisy, and gives None if its metrics are missing. `alarm_monitor.py` decides when an alarm is
raised again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, NamedTuple

from foresail.runlog.key_metrics import accuracy_tells, as_number

Record = Mapping[str, Any]
History = Sequence[Record]

RECENT = 5  # steps that a mean is taken over
ACCURACY, LENGTH = "rollout/accuracy", "response_length/mean"
GROUPS = ("groups/useful", "groups/solved", "groups/unsolved")
LOAD, DEAD = "router/load_max_over_mean", "router/dead_experts"
BALANCE = (
    "Raise router.balance or router.final_share, or set router.correction_rate; `foresail show` draws it"
)
ENOUGH_TOKENS = 100  # per expert on average: with these, an expert without any is no chance
FAILURES = ("verdict/timeout", "verdict/crashed", "verdict/ungradable")


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """`text` is the observation, with numbers; `advice` says what to try."""

    name: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}. {self.advice}"


def entropy_collapse(history: History) -> Alarm | None:
    """Entropy fell five times faster than the error rate, so the policy stops exploring."""
    entropy, accuracy = first_and_last(history, "actor/entropy"), first_and_last(history, ACCURACY)
    if entropy is None or accuracy is None or accuracy[1] > 0.95:
        return None
    errors = (1 - accuracy[1]) / max(1 - accuracy[0], 0.05)
    if not entropy[1] < 0.2 * errors * entropy[0]:
        return None
    return Alarm(
        name="entropy collapse",
        text=f"entropy fell from {entropy[0]:.3g} to {entropy[1]:.3g}, accuracy only went from "
        f"{accuracy[0]:.2f} to {accuracy[1]:.2f}",
        advice="Raise loss.clip_high, lower optimizer.lr or updates_per_step, or raise sampling.temperature",
    )


def length_explosion(history: History) -> Alarm | None:
    """Responses got longer without higher accuracy."""
    if (now := last_means(history, LENGTH, ACCURACY)) is None:
        return None
    length, accuracy = now
    as_good = [then for then in earlier_steps(history) if then.accuracy >= accuracy - 0.01]
    shortest = min(as_good, key=lambda then: then.length, default=None)
    if shortest is None or not length > 2 * shortest.length:
        return None
    return Alarm(
        name="length explosion",
        text=f"responses have {length:.0f} tokens and are right in {accuracy:.0%}; around step {shortest.step} "
        f"{shortest.length:.0f} tokens sufficed for {shortest.accuracy:.0%}",
        advice="Look for loops in RUN/rollouts; set reward.overlong_buffer, or lower optimizer.lr",
    )


def length_collapse(history: History) -> Alarm | None:
    """Responses got half as long, and accuracy fell by 0.1."""
    now = last_means(history, LENGTH, ACCURACY)
    best = max(earlier_steps(history), key=lambda then: then.accuracy, default=None)
    if now is None or best is None:
        return None
    length, accuracy = now
    if not (length < best.length / 2 and accuracy < best.accuracy - 0.1):
        return None
    return Alarm(
        name="length collapse",
        text=f"responses have {length:.0f} tokens and are right in {accuracy:.0%}; around step {best.step} they "
        f"had {best.length:.0f} and were right in {best.accuracy:.0%}",
        advice="Lower reward.overlong_factor or optimizer.lr, and go on from an earlier checkpoint",
    )


def reward_without_accuracy(history: History) -> Alarm | None:
    """The reward rose without the accuracy, so other terms of the reward are being exploited."""
    window = history[-5 * RECENT :]
    reward, accuracy = first_and_last(window, "rollout/reward"), first_and_last(window, ACCURACY)
    if reward is None or accuracy is None or len(window) < 3 * RECENT:
        return None
    greatest = max(numbers(window, "critic/rewards/max"), default=0.0)
    span = greatest - min(numbers(window, "critic/rewards/min"), default=0.0)
    rise = (reward[1] - reward[0]) / span if span else 0.0
    if not (rise > 0.1 and accuracy[1] - accuracy[0] < 0.1 * rise):
        return None
    if not any(accuracy_tells(record) for record in window):
        return None
    return Alarm(
        name="reward without accuracy",
        text=f"in {len(window)} steps the reward rose from {reward[0]:.2f} to {reward[1]:.2f}, accuracy went from "
        f"{accuracy[0]:.2f} to {accuracy[1]:.2f}",
        advice="Read the best samples in RUN/rollouts: shaping or partial credit may be earned without an answer; "
        "lower reward.format_weight, or mend the grader",
    )


def too_easy(history: History) -> Alarm | None:
    useful, solved, unsolved = last_means(history, *GROUPS) or (1.0, 0.0, 0.0)
    if useful > 0.05 or solved < unsolved:
        return None
    return Alarm(
        name="groups too easy",
        text=f"{useful:.0%} of the groups teach something; in {solved:.0%} every sample is right",
        advice="Bring harder problems, or set dynamic_sampling.easy_pool to take solved ones rarely; if these are "
        "all there are, the run is done",
    )


def too_hard(history: History) -> Alarm | None:
    useful, solved, unsolved = last_means(history, *GROUPS) or (1.0, 0.0, 0.0)
    if useful > 0.1 or solved >= unsolved:
        return None
    return Alarm(
        name="groups too hard",
        text=f"{useful:.0%} of the groups teach something; in {unsolved:.0%} no sample is right",
        advice="Bring easier problems, begin with fine-tuning, or raise samples_per_prompt or "
        "sampling.max_new_tokens; look in RUN/rollouts whether the grader finds the answers",
    )


def mismatch_rising(history: History) -> Alarm | None:
    kl = first_and_last(history, "rollout/logprob_kl")
    if kl is None or not (kl[1] > 1e-3 and kl[1] > 5 * kl[0]):
        return None
    return Alarm(
        name="mismatch rising",
        text=f"the KL between engine and trainer rose from {kl[0]:.1e} to {kl[1]:.1e}; up to 1e-3 is usual",
        advice='Set model.dtype = "float16", which rounds eight times finer than bfloat16, or '
        'engine.batch_invariant = true; or make up for it with loss.old_logprobs = "trainer" and '
        "loss.importance_cap = 2",
    )


def gradient_spikes(history: History) -> Alarm | None:
    """One spike is clipped and does no harm; two within a few steps raise the alarm."""
    before, now = numbers(history[-5 * RECENT : -RECENT], "actor/grad_norm"), history[-RECENT:]
    if len(before) < 2 * RECENT:
        return None
    usual = median(before)
    spikes = [norm for norm in numbers(now, "actor/grad_norm") if norm > 10 * usual > 0]
    if len(spikes) < 2:
        return None
    return Alarm(
        name="gradient spikes",
        text=f"{len(spikes)} of the last {RECENT} steps had gradient norms up to {max(spikes):.3g}; usual was "
        f"{usual:.3g}",
        advice="Lower optimizer.lr or optimizer.clip_norm, or raise optimizer.beta2",
    )


def clip_fraction(history: History) -> Alarm | None:
    (share,) = last_means(history, "actor/pg_clipfrac") or (0.0,)
    if not share > 0.25:
        return None
    return Alarm(
        name="clip fraction",
        text=f"{share:.0%} of the tokens are beyond the loss's bounds and teach little",
        advice="Lower optimizer.lr or updates_per_step, or widen loss.clip_low and loss.clip_high",
    )


def truncated_responses(history: History) -> Alarm | None:
    (share,) = last_means(history, "response_length/clip_ratio") or (0.0,)
    if not share > 0.3:
        return None
    return Alarm(
        name="truncated responses",
        text=f"{share:.0%} of the responses are cut at the limit, most of them before an answer",
        advice="Raise sampling.max_new_tokens or set reward.overlong_buffer; if few ever end, the prompt or the "
        "chat template does not make the model stop",
    )


def failed_verdicts(history: History) -> Alarm | None:
    """A few failures cost a few groups; with many, rewards mean little."""
    shares = {name: next(iter(numbers(history[-1:], name)), 0.0) for name in FAILURES}
    if not sum(shares.values()) > 0.1:
        return None
    kinds = ", ".join(f"{name.split('/')[1]} {share:.0%}" for name, share in shares.items() if share)
    first = history[-1].get("verdict/first_failure")
    return Alarm(
        name="failed verdicts",
        text=f"{sum(shares.values()):.0%} of the verdicts failed ({kinds})" + (f"; {first}" if first else ""),
        advice="Their groups are dropped. Correct the grader or these problems, or raise reward.time_limit",
    )


def dead_experts(history: History) -> Alarm | None:
    """Some experts had no token in any of the last steps, with enough tokens for all."""
    tokens = numbers(history[-RECENT:], "router/tokens_per_expert")
    dead = numbers(history[-RECENT:], DEAD)
    if len(dead) < RECENT or not min(dead) > 0 or not min(tokens, default=0.0) >= ENOUGH_TOKENS:
        return None
    return Alarm(
        name="dead experts",
        text=f"{min(dead):.0f} experts or more had no token in each of the last {RECENT} steps, where the mean is "
        f"{fmean(tokens):.0f}",
        advice=BALANCE,
    )


def uneven_experts(history: History) -> Alarm | None:
    """The load became more uneven in training; an uneven start raises no alarm."""
    load = first_and_last(history, LOAD)
    if load is None or not (load[1] > 3 and load[1] > 1.5 * load[0]):
        return None
    return Alarm(
        name="uneven experts",
        text=f"the busiest expert of a layer had {load[0]:.1f} times the mean load at first and has {load[1]:.1f} "
        "times now",
        advice=BALANCE,
    )


CHECKS: tuple[Callable[[History], Alarm | None], ...] = (
    entropy_collapse,
    length_explosion,
    length_collapse,
    reward_without_accuracy,
    too_easy,
    too_hard,
    mismatch_rising,
    gradient_spikes,
    clip_fraction,
    truncated_responses,
    failed_verdicts,
    dead_experts,
    uneven_experts,
)


# Helpers of the checks.


def column(records: Iterable[Record], name: str) -> list[float | None]:
    return [as_number(record.get(name)) for record in records]


def numbers(records: Iterable[Record], name: str) -> list[float]:
    return [value for value in column(records, name) if value is not None]


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None where there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def last_means(history: History, *names: str) -> list[float] | None:
    """Means over the last few steps; None with fewer steps, or if a metric is missing."""
    known = [value for name in names if (value := mean(column(history[-RECENT:], name))) is not None]
    return known if len(history) >= RECENT and len(known) == len(names) else None


def first_and_last(history: History, name: str) -> tuple[float, float] | None:
    """Means over the first and the last few steps; None while they overlap."""
    first, last = mean(column(history[:RECENT], name)), mean(column(history[-RECENT:], name))
    return None if len(history) < 2 * RECENT or first is None or last is None else (first, last)


class EarlierSteps(NamedTuple):
    """Means of a few past steps around `step`."""

    step: int
    accuracy: float
    length: float


def earlier_steps(history: History) -> list[EarlierSteps]:
    """Every run of a few steps that ended before the last few began."""
    accuracies, lengths = column(history, ACCURACY), column(history, LENGTH)
    stretches = []
    for start in range(len(history) - 2 * RECENT + 1):
        block = slice(start, start + RECENT)
        accuracy, length = mean(accuracies[block]), mean(lengths[block])
        if accuracy is not None and length is not None:
            stretches.append(EarlierSteps(history[start + RECENT // 2]["step"], accuracy, length))
    return stretches
