"""Trains the language model: softmax regression over hashed n-grams, by gradient descent, then eight bits a weight.

Every language counts alike, and every source of a language alike as far as its text goes: a language must not be
known by the topics of its largest source. Files are JSON lines with `text` and `src`, named by what they hold:
`id.jsonl.xz`, `other-slavic.jsonl`, `none-code.jsonl`; each file is a class of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foresail.curate.language.features import SCRIPT_WEIGHTS, code_points, script_table
from foresail.curate.language.model import LanguageModel
from foresail.curate.language.sentences import split_sentences
from foresail.data.files import open_bytes, parse_json

LONGEST = 300  # letters of an example
SHORTEST = 6
TEMPERATURE = 1.5  # of the scores: where sources were held out, probabilities were that much too sure
SMALL = 2  # steps of 127; a third of the file's size, and nothing is lost
MARKUP = re.compile(
    r"^ {0,3}```[^\n]*\n.*?^ {0,3}```|`[^`\n]*`|\]\([^)\s]*\)|<[^<>\n]*>|https?://\S+", re.S | re.M
)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How to train. Examples of a pass are drawn evenly from the sources of a class."""

    bits: int = 18
    passes: int = 4
    rate: float = 6.0
    examples: int = 40_000  # of a class, each pass
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Example:
    name: str  # of its class: "id", "other-slavic"
    source: str
    text: str


def read_examples(files: Sequence[Path]) -> list[Example]:
    """Sentences, without markup, code and addresses; long ones are cut, unless their class is "none"."""
    return [example for file in files for example in of_file(file)]


def of_file(file: Path) -> Iterator[Example]:
    name = file.name.partition(".")[0]
    with open_bytes(file) as lines:
        for number, line in enumerate(lines, start=1):
            row = parse_json(line.decode("utf-8", "replace"), f"{file}, line {number}")
            if not isinstance(row, dict) or not isinstance(text := row.get("text"), str):
                raise ValueError(f'{file}, line {number}: there is no "text"; write {{"text": …, "src": …}}')
            source = str(row.get("src", ""))
            if name.startswith("none"):
                yield Example(name=name, source=source, text=text[:LONGEST])
                continue
            for sentence in split_sentences(MARKUP.sub(" ", text)):
                if sum(map(str.isalpha, sentence[:LONGEST])) >= SHORTEST:
                    yield Example(name=name, source=source, text=sentence[:LONGEST])


def train(examples: Sequence[Example], fit: Fit, note: Callable[[str], object] = print) -> LanguageModel:
    from foresail.curate.language import kernel

    names = sorted({example.name for example in examples})
    if len(names) < 2:
        raise ValueError("one class is not enough; give files of two languages at least")
    encoded = [code_points(example.text) for example in examples]
    starts = np.cumsum([0, *(len(codes) for codes in encoded)])
    codes = np.concatenate(encoded)
    labels = np.array([names.index(example.name) for example in examples])
    weights = np.zeros((1 << fit.bits, len(names)), np.float32)
    bias = np.zeros(len(names), np.float32)
    chance = np.random.default_rng(fit.seed)
    groups = by_source(examples)
    for number in range(fit.passes):
        order = draw(groups, fit.examples, chance)
        loss = kernel.train_pass(
            codes,
            starts,
            labels,
            order,
            script_table(),
            SCRIPT_WEIGHTS,
            weights,
            bias,
            fit.rate * (1 - number / fit.passes),
            fit.rate * (1 - (number + 1) / fit.passes),
        )
        note(f"pass {number + 1} of {fit.passes}: {len(order):,} sentences, loss {loss:.4f}")
    return quantize(names, weights, bias)


def by_source(examples: Sequence[Example]) -> list[list[np.ndarray]]:
    """Numbers of the examples, by class and source."""
    found: dict[str, dict[str, list[int]]] = {}
    for number, example in enumerate(examples):
        found.setdefault(example.name, {}).setdefault(example.source, []).append(number)
    return [[np.array(numbers) for numbers in sources.values()] for sources in found.values()]


def draw(groups: list[list[np.ndarray]], examples: int, chance: np.random.Generator) -> np.ndarray:
    """Numbers of one pass in their order: of each class as many, of each source an even part or all it has."""
    drawn = []
    for sources in groups:
        left = examples
        for place, numbers in enumerate(sorted(sources, key=len)):
            take = min(len(numbers), left // (len(sources) - place))
            drawn.append(chance.choice(numbers, take, replace=False))
            left -= take
    return chance.permutation(np.concatenate(drawn))


def quantize(names: Sequence[str], weights: np.ndarray, bias: np.ndarray) -> LanguageModel:
    """Eight bits a weight. What all classes of a bucket share says nothing and is taken off first."""
    weights = weights - weights.mean(axis=1, keepdims=True)
    scale = np.quantile(np.abs(weights[np.any(weights != 0, axis=1)]), 0.9995, axis=0) / 127
    scale = np.maximum(scale, 1e-9).astype(np.float32)
    steps = np.clip(np.round(weights / scale), -127, 127)
    return LanguageModel(
        labels=tuple(name.partition("-")[0] for name in names),
        weights=np.where(np.abs(steps) <= SMALL, 0, steps).astype(np.int8),
        scale=(scale / TEMPERATURE).astype(np.float32),
        bias=(bias / TEMPERATURE).astype(np.float32),
    )


def accuracy(model: LanguageModel, examples: Sequence[Example]) -> dict[str, float]:
    """By language, of its sentences."""
    right: dict[str, list[bool]] = {}
    for example in examples:
        label = example.name.partition("-")[0]
        right.setdefault(label, []).append(model.guess(example.text).best == label)
    return {label: float(np.mean(found)) for label, found in sorted(right.items())}


def hold_out(examples: Sequence[Example], sources: Sequence[str]) -> tuple[list[Example], list[Example]]:
    """The examples of other sources, and those of these."""
    names = {example.source for example in examples}
    if missing := set(sources) - names:
        raise ValueError(
            f"no example is of {', '.join(sorted(missing))}; there are {', '.join(sorted(names))}"
        )
    return (
        [example for example in examples if example.source not in sources],
        [example for example in examples if example.source in sources],
    )


def write_accuracy(found: dict[str, float]) -> str:
    return json.dumps({label: round(share, 4) for label, share in found.items()})
