"""Misspelt names: which of several names was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SHORT = 4  # letters of a word that is too short to tell a slip from another word
LONG = 10  # and of one in which there may be two
FAR, FAR_LONG = 8, 14  # of a path in which an edit may be anywhere, and of one in which there may be two
MAX_LENGTH_DIFFERENCE = 4  # letters more or less than a name has


def edits(one: str, other: str) -> int:
    """Letters to insert, delete, replace, or swap with the next one: edits("rnu", "run") -> 1."""
    before, above = [0] * (len(other) + 1), list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        line = [row]
        for column, its in enumerate(other, start=1):
            best = min(above[column] + 1, line[-1] + 1, above[column - 1] + (letter != its))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == its:
                best = min(best, before[column - 2] + 1)
            line.append(best)
        before, above = above, line
    return above[-1]


def slip_edits(written: str, meant: str, *, shortest: int = SHORT) -> int | None:
    """The number of edits, where so few make a slip of one word; None: it is another word.

    One edit, or two of long words; never a digit, and the first letter is right. A letter for another one only in
    longer words: it makes max of min.  slip_edits("stpes", "steps") -> 1; slip_edits("cpus", "gpus") -> None
    """
    if written == meant:
        return 0
    least = min(len(written), len(meant))
    if least < shortest or max(len(written), len(meant)) > least + 2:
        return None
    if written[0] != meant[0] and written[:2] != meant[1::-1]:
        return None
    if re.sub(r"\D", "", written) != re.sub(r"\D", "", meant):
        return None
    allowed = 2 if least >= LONG else 1
    if len({*written} ^ {*meant}) > 2 * allowed:  # quicker than counting: an edit changes two letters at most
        return None
    number = edits(written, meant)
    replaced = len(written) == len(meant) and sorted(written) != sorted(meant)
    return number if number <= allowed and not (replaced and least <= SHORT) else None


def name_edits(written: str, meant: str, *, shortest: int = SHORT) -> int | None:
    """The same for names: word by word, or as a whole where an underscore was forgotten.

    name_edits("gradient_acumulation_steps", "gradient_accumulation_steps") -> 1; of "lr_decay_steps" and
    "lr_decay_style" -> None; name_edits("learningrate", "learning_rate") -> 1
    """
    if abs(len(written) - len(meant)) > MAX_LENGTH_DIFFERENCE:
        return None
    words, others = written.split("_"), meant.split("_")
    if len(words) != len(others):
        same = written.replace("_", "") == meant.replace("_", "")
        return abs(len(words) - len(others)) if same else None
    return total(
        slip_edits(word, other, shortest=shortest) for word, other in zip(words, others, strict=True)
    )


def path_edits(written: str, meant: str) -> int | None:
    """The same for dotted paths, in which a table or a key may be short: "optimiser.lr", "rnu.name"."""
    if abs(len(written) - len(meant)) > MAX_LENGTH_DIFFERENCE:
        return None
    names, others = written.split("."), meant.split(".")
    if len(names) != len(others):
        return None
    shortest = SHORT if len(names) == 1 else 2
    return total(name_edits(one, other, shortest=shortest) for one, other in zip(names, others, strict=True))


def far_edits(written: str, meant: str) -> int | None:
    """The same for whole paths, wherever the edits are: far_edits("ooss.clip_high", "loss.clip_high") -> 1.

    One edit, or two of long ones; a name of a table or a key keeps more than half of its letters.
    """
    least = min(len(written), len(meant))
    allowed = 2 if least >= FAR_LONG else 1
    if least < FAR or abs(len(written) - len(meant)) > allowed or len({*written} ^ {*meant}) > 2 * allowed:
        return None
    if re.sub(r"\D", "", written) != re.sub(r"\D", "", meant) or (count := edits(written, meant)) > allowed:
        return None
    names, others = written.split("."), meant.split(".")
    alike = len(names) == len(others) and all(
        one == other or min(len(one), len(other)) > max(SHORT - 1, 2 * edits(one, other))
        for one, other in zip(names, others, strict=True)
    )
    return count if alike or len(names) != len(others) else None


def total(counts: Iterable[int | None]) -> int | None:
    """Edits in all words together; None: too many words differ."""
    known = []
    for count in counts:
        if count is None:
            return None
        known.append(count)
    return sum(known) if sum(count > 0 for count in known) <= max(1, len(known) - 1) else None


def nearest(counted: Sequence[tuple[int, str]]) -> str | None:
    """The name with the fewest edits, if there is only one: nearest([(1, "a"), (2, "b")]) -> "a"."""
    least = min((count for count, _ in counted), default=0)
    meanings = {meaning for count, meaning in counted if count == least}
    return meanings.pop() if len(meanings) == 1 else None
