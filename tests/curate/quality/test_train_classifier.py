"""Training from labels: what is learned, what is held out, and what is refused."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from labelled_texts import labelled_rows, write_rows
from typer.testing import CliRunner

from foresail.cli import app
from foresail.curate.quality.figures import calibration, rank_correlation
from foresail.curate.quality.labels import HeadFinder, read_labels
from foresail.curate.quality.linear import LinearClassifier
from foresail.curate.quality.ngrams import LONGEST, RESERVED, SHORTEST, NgramFeatures
from foresail.curate.quality.training import Training, train_classifier


def trained(
    folder: Path, rows: int = 600, **settings: object
) -> tuple[LinearClassifier, dict[str, dict[str, float]]]:
    file = write_rows(folder / "labels.jsonl", labelled_rows(rows))
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return train_classifier(read_labels(file), scratch, Training(bits=14, **settings))  # type: ignore[arg-type]


def test_all_heads_are_learned_and_a_saved_classifier_predicts_the_same(tmp_path: Path) -> None:
    model, figures = trained(tmp_path)
    assert figures["fluency"]["rank_correlation"] > 0.8 and figures["worth"]["rank_correlation"] > 0.8
    assert figures["fluency"]["accuracy"] > figures["fluency"]["accuracy_of_the_commonest"] + 0.2
    assert figures["domain"]["accuracy"] == 1.0 and 40 < figures["domain"]["rows"] < 80
    model.save(tmp_path / "quality.npz")
    again = LinearClassifier.load(tmp_path / "quality.npz")
    for row in labelled_rows(20, seed=5):
        assert again.predict(row["text"]) == model.predict(row["text"])
        predictions = again.predict(row["text"])
        assert 0 <= float(predictions["fluency"].value) <= 3
        assert 1.5 <= float(predictions["worth"].value) <= 4.6


def test_training_is_the_same_twice_and_unlike_with_labels_in_disorder(tmp_path: Path) -> None:
    first, figures = trained(tmp_path)
    second, _ = trained(tmp_path)
    assert np.array_equal(first.weights_FC, second.weights_FC)
    rows = labelled_rows(600)
    labels = [row["labels"] for row in rows]
    random.Random(1).shuffle(labels)
    file = write_rows(
        tmp_path / "mixed.jsonl", [{**row, "labels": own} for row, own in zip(rows, labels, strict=True)]
    )
    _, mixed = train_classifier(read_labels(file), tmp_path / "scratch", Training(bits=14))
    assert abs(mixed["fluency"]["rank_correlation"]) < 0.3 < figures["fluency"]["rank_correlation"]


def test_rows_may_lack_labels(tmp_path: Path) -> None:
    rows = labelled_rows(400)
    for number, row in enumerate(rows):
        row["labels"].pop(("fluency", "worth", "domain")[number % 3])
    file = write_rows(tmp_path / "labels.jsonl", rows)
    _, figures = train_classifier(read_labels(file), tmp_path, Training(bits=14, held_out=0.2))
    assert figures["domain"]["accuracy"] > 0.9
    assert figures["fluency"]["rows"] + figures["worth"]["rows"] + figures["domain"]["rows"] < 400 * 0.25 * 2


def test_repeated_texts_are_on_one_side() -> None:
    features = NgramFeatures(bits=12)
    first, second = features.of("the same text"), features.of("the same text")
    assert np.array_equal(first.indices, second.indices) and np.array_equal(first.values, second.values)


def test_features_equal_a_plain_count_of_the_ngrams() -> None:
    """Distinct n-grams of a slow count in Python, beyond collisions; and values of unit length."""
    text = "Ab 12  สวัสดี, ab x"
    plain = "ab 00 สวัสดี, ab x "
    grams = {
        plain[end - size : end]
        for size in range(SHORTEST, LONGEST + 1)
        for end in range(size, len(plain) + 1)
    }
    words = ["ab", "00", "สวัสดี", ",", "ab", "x"]
    pairs = {*zip(["", *words], [*words, ""], strict=True)} - {("สวัสดี", ","), ("x", "")}
    features = NgramFeatures(bits=20).of(text)
    own = features.indices >= RESERVED
    assert own.sum() == len(grams) + len({*words} - {","}) + len(pairs)
    assert math.isclose(float(np.sum(features.values[own] ** 2)), 1.0, rel_tol=1e-5)


@pytest.mark.parametrize("text", ["", " ", "\ud800", "\0" * 50, "𐍈" * 9, "a" * 100_000, "\n" * 100_000])
def test_any_text_has_a_finite_prediction(tmp_path: Path, text: str) -> None:
    model = LinearClassifier(
        heads=finder_heads(),
        bits=12,
        max_chars=200,
        weights_FC=np.random.default_rng(0).normal(size=(1 << 12, 3)).astype(np.float32) * 1e4,
        biases_B=np.zeros(5, np.float32),
    )
    for prediction in model.predict(text).values():
        assert isinstance(prediction.value, str) or math.isfinite(prediction.value)
        assert 0 <= prediction.probability <= 1


def finder_heads() -> tuple:  # type: ignore[type-arg]
    finder = HeadFinder()
    for level, word in ((0.0, "a"), (3.0, "b")):
        finder.add({"level": level, "word": word})
    return finder.heads()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"labels": {"a": 1}}, "no column text"),
        ({"text": "x"}, "no labels; write"),
        ({"text": "x", "labels": [3]}, "no labels; write"),
        ({"text": "x", "labels": {"a": [1]}}, r"label a is \[1\]; write a number"),
        ({"text": "x", "labels": {"a": ""}}, "write a number or a word"),
        ({"text": "x", "labels": {}}, "no row has a label"),
        ({"text": "x", "labels": {"a": 1}}, "is 1 in every row"),
        ({"text": "x", "labels": {"a": "b"}}, "1 classes; between 2"),
    ],
)
def test_wrong_labels_are_refused(tmp_path: Path, row: dict[str, object], message: str) -> None:
    file = write_rows(tmp_path / "labels.jsonl", [row] * 30)
    with pytest.raises(ValueError, match=message):
        train_classifier(read_labels(file), tmp_path, Training(bits=12))


def test_a_label_is_a_number_or_a_word_in_all_rows(tmp_path: Path) -> None:
    rows = [{"text": "x", "labels": {"a": 1}}, {"text": "y", "labels": {"a": "one"}}]
    file = write_rows(tmp_path / "labels.jsonl", rows)
    with pytest.raises(ValueError, match="a number in some rows and a word in others"):
        train_classifier(read_labels(file), tmp_path, Training(bits=12))


def test_rank_correlation_and_calibration_of_known_numbers() -> None:
    assert rank_correlation(np.array([1, 2, 3]), np.array([10, 30, 20])) == 0.5
    assert rank_correlation(np.array([1, 1, 2, 2]), np.array([5, 5, 9, 9])) == pytest.approx(1.0)
    assert rank_correlation(np.array([1, 1]), np.array([1, 2])) == 0.0
    _, error = calibration(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 0.0]))
    assert error == pytest.approx(0.25)


def test_the_command_prints_held_out_figures_and_writes_a_file(tmp_path: Path) -> None:
    rows = [{"text": row["text"], "fluency": row["labels"]["fluency"]} for row in labelled_rows(300)]
    file = write_rows(tmp_path / "labels.jsonl", rows)
    out = tmp_path / "models" / "quality.npz"
    arguments = ["data", "train-classifier", str(file), str(out), "--label", "fluency", "--bits", "14"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "fluency: held-out rows" in result.output and "rank correlation" in result.output
    assert [head.name for head in LinearClassifier.load(out).heads] == ["fluency"]
    assert [path.name for path in out.parent.iterdir()] == ["quality.npz"]


def test_a_damaged_classifier_is_refused(tmp_path: Path) -> None:
    model, _ = trained(tmp_path, rows=60)
    file = tmp_path / "quality.npz"
    model.save(file)
    whole = file.read_bytes()
    generator = random.Random(0)
    for _ in range(40):
        file.write_bytes(whole[: generator.randrange(1, len(whole))])
        with pytest.raises(ValueError, match="is no classifier of this version"):
            LinearClassifier.load(file)
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        file.write_bytes(damaged)
        with suppress(ValueError):  # names in the file's index may differ without harm
            LinearClassifier.load(file)
    with pytest.raises(FileNotFoundError, match="train-classifier"):
        LinearClassifier.load(tmp_path / "absent.npz")
