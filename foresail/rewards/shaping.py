"""Penalties for length, format and language, added to a reward if the recipe asks for them."""

from __future__ import annotations

from foresail.rewards.unicode_scripts import dominant_script, foreign_share


def overlong_penalty(num_tokens: int, *, limit: int, buffer: int, factor: float) -> float:
    """DAPO's soft punishment: 0 until `limit - buffer` tokens, then down in a line to `-factor` at the limit.

    overlong_penalty(90, limit=100, buffer=20, factor=1.0) -> -0.5; a buffer of 0 turns it off.
    """
    if buffer == 0:
        return 0.0
    excess = num_tokens - (limit - buffer)
    return -factor * min(max(excess / buffer, 0.0), 1.0)


def format_penalty(response: str, *, weight: float) -> float:
    """`-weight` unless the response thinks once and then answers: "<think>…</think> 7" -> 0, "7" -> -weight."""
    if weight == 0:
        return 0.0
    return 0.0 if thinks_then_answers(response) else -weight


def thinks_then_answers(text: str) -> bool:
    """Exactly one thought, at the beginning, and something after it."""
    before, opened, rest = text.partition("<think>")
    thought, closed, answer = rest.partition("</think>")
    again = "<think>" in thought + answer or "</think>" in before + answer
    return bool(opened and closed and thought.strip() and answer.strip() and not before.strip() and not again)


def language_penalty(prompt: str, response: str, *, weight: float) -> float:
    """`-weight` times the share of the response's letters that are not in the prompt's script.

    language_penalty("Сколько будет 3+4?", "Seven", weight=0.5) -> -0.5. LaTeX, code and lone letters do not count.
    """
    if weight == 0:
        return 0.0
    script = dominant_script(prompt)
    return 0.0 if script is None else -weight * foreign_share(response, script)
