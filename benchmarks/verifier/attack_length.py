r"""A search for texts that take more time to read than their length accounts for.

A response of 20,000 dashes once took 40 s to grade. Here, texts are made of pieces: signs, words and markers that
the patterns of a room mention, and those of `attack_pieces.py`. Up to three of them in turns, many times, stand in
frames such as `\boxed{…}`, with others before and behind. Each text is read at a quarter, at half and at all of a
length. One whose CPU time grows by more than GROWTH with each doubling is a find.

    python benchmarks/verifier/attack_length.py    # 20 s a reader
    python benchmarks/verifier/attack_length.py --readers qa maths --seconds 600 --seed 7

The last line is JSON; the exit status is 1 where there are finds.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from attack_pieces import BLANKS, LETTERS, SIGNS
from attack_readers import READERS, Reader
from pattern_loops import patterns_of

# Characters: within the windows of most rules, within the longest answer that the maths grammar reads, and more.
LENGTHS = (3_000, 19_000, 100_000)
GROWTH = 2.6  # with each doubling; n log n has 2.2, a square 4
FEW, MUCH = 0.002, 0.03  # CPU seconds at a quarter and at all of a length that are worth a second look
LIMIT = 3.0  # CPU seconds that a reading may take before it is stopped
SHOWN = 6  # finds of a reader in the report


class TooLong(BaseException):
    """A BaseException, so that no reader catches it."""


class Text(NamedTuple):
    """`before`, as many copies of `piece` as fit, `behind`."""

    before: str
    piece: str
    behind: str

    def of(self, length: int) -> str:
        room = max(0, length - len(self.before) - len(self.behind))
        return self.before + self.piece * (room // len(self.piece)) + self.behind


class Find(NamedTuple):
    """CPU seconds at a quarter, half and all of the length; LIMIT and more where the reading was stopped."""

    text: Text
    length: int
    seconds: tuple[float, ...]


def main() -> None:
    options = read_options()
    signal.signal(signal.SIGVTALRM, stop)
    figures: dict[str, Any] = {"seed": options.seed, "seconds": options.seconds, "readers": {}, "finds": 0}
    for name in options.readers:
        rng = random.Random(f"{options.seed} {name}")
        tried, slowest, finds = attack(READERS[name], rng, options.seconds)
        shown = [
            [*find.text, find.length, *(round(seconds, 4) for seconds in find.seconds)]
            for find in finds[:SHOWN]
        ]
        figures["readers"][name] = {"tried": tried, "slowest_s": round(slowest, 4), "finds": len(finds)}
        figures["finds"] += len(finds)
        print(f"{name:20} {tried:7} texts, slowest {slowest:.3f} s, {len(finds)} finds", flush=True)
        for each in shown:
            print(f"    {each}", flush=True)
        if shown:
            figures["readers"][name]["examples"] = shown
    print(json.dumps(figures, ensure_ascii=False))
    sys.exit(1 if figures["finds"] else 0)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--readers", nargs="+", choices=READERS, default=[*READERS], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds for each reader")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


# Texts.


class Pieces(NamedTuple):
    """Signs, blanks and letters; what the table adds; all words in the patterns of the reader's rooms."""

    short: tuple[str, ...]
    added: tuple[str, ...]
    words: tuple[str, ...]

    def draw(self, rng: random.Random, longest: int) -> list[str]:
        """Up to `most` pieces; words are many and foreign to each other, so they are drawn less."""
        count = rng.randrange(longest + 1)
        return [rng.choice(kind) for kind in rng.choices([kind for kind in self if kind], k=count)]


def pieces_of(reader: Reader) -> Pieces:
    runs = (literal_runs(pattern.pattern) for _, pattern in patterns_of(*reader.rooms))
    words = dict.fromkeys(word for run in runs for word in run)
    return Pieces((*SIGNS, *BLANKS, *LETTERS), reader.pieces, tuple(words))


def literal_runs(pattern: str) -> Iterator[str]:
    r"""literal_runs(r"\bnot|n[’']t (?:an?)") -> "not", "n", "t ", "an": what stands for itself."""
    bare = re.sub(
        r"\(\?(?:[:=!>]|<[=!]|P<\w+>|-?[a-z]+:)|\{\d*,?\d*\}|\[[^\]]*\]|\\[bBwWsSdDZA]", "\x00", pattern
    )
    for run in re.split(r"[\x00|()?*+]+", bare):
        if word := re.sub(r"\\(.)", r"\1", run).strip("^$."):
            yield word


def cases_of(reader: Reader, rng: random.Random) -> Iterator[tuple[Text, int]]:
    """Every piece at every length, every pair of signs, every piece in every frame; then mixtures without end."""
    pieces = pieces_of(reader)
    every = [*dict.fromkeys(piece for kind in pieces for piece in kind)]
    for piece in every:
        before, behind = rng.choice(reader.frames)
        yield from ((Text(before, piece, behind), length) for length in LENGTHS)
    pairs = [
        Text(before, one + two, behind)
        for one in pieces.short
        for two in pieces.short
        for before, behind in [rng.choice(reader.frames)]
        if one != two
    ]
    alone = [Text(before, piece, behind) for piece in every for before, behind in reader.frames]
    for texts in (pairs, alone):
        rng.shuffle(texts)
        for text in texts:
            yield text, some_length(rng)
            yield mixture(reader, pieces, rng), some_length(rng)
    while True:
        yield mixture(reader, pieces, rng), some_length(rng)


def some_length(rng: random.Random) -> int:
    """The short one mostly, for that is read fast."""
    return rng.choices(LENGTHS, (4, 1, 1))[0]


def mixture(reader: Reader, pieces: Pieces, rng: random.Random) -> Text:
    """Up to four pieces in turns, with up to three before and behind, within a frame."""
    before, behind = rng.choice(reader.frames)
    gap = rng.choice(("", "", "", " ", "\n"))
    piece = gap.join(pieces.draw(rng, 3) or [rng.choice(pieces.short)]) + gap
    before += gap.join(pieces.draw(rng, 3))
    behind = gap.join(pieces.draw(rng, 3)) + behind
    return Text(before, piece, behind)


# Times.


def attack(reader: Reader, rng: random.Random, seconds: float) -> tuple[int, float, list[Find]]:
    """How many texts were tried, the most CPU seconds that one of them took, and the finds."""
    reader.read("7")  # builds what is cached, before anything is timed
    tried, slowest, finds = 0, 0.0, []
    started = time.process_time()
    for text, length in cases_of(reader, rng):
        if time.process_time() - started > seconds:
            break
        tried += 1
        taken = growth(reader, text, length)
        if is_find(taken):  # again, with texts that no cache has seen
            again = growth(reader, text, length - 3 * len(text.piece))
            taken = tuple(map(min, taken, again))
        slowest = max(slowest, taken[-1])
        if is_find(taken):
            finds.append(Find(text, length, taken))
    return tried, slowest, finds


def growth(reader: Reader, text: Text, length: int) -> tuple[float, ...]:
    """CPU seconds at a quarter, half and all of a length; no more than the first where that says enough."""
    quarter = cpu_seconds(reader, text.of(length // 4))
    if quarter < FEW or cpu_seconds(reader, text.of(length // 8)) * GROWTH * 0.8 > quarter:
        return quarter, quarter, quarter
    return quarter, cpu_seconds(reader, text.of(length // 2)), cpu_seconds(reader, text.of(length))


def is_find(seconds: tuple[float, ...]) -> bool:
    quarter, half, whole = seconds
    return whole >= LIMIT or (whole > MUCH and whole > GROWTH * half and half > GROWTH * quarter)


def cpu_seconds(reader: Reader, text: str) -> float:
    """Of this thread, for a process's clock is coarse while a timer runs; LIMIT or more where it was stopped."""
    gc.disable()  # a collection looks at all that was ever made
    started = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        reader.read(text)
    except TooLong:
        return max(LIMIT, time.thread_time() - started)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        taken = time.thread_time() - started
        gc.enable()
    return taken


def stop(number: int, frame: FrameType | None) -> None:
    raise TooLong


if __name__ == "__main__":
    main()
