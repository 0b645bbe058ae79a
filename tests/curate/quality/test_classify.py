"""The step classify: metadata, thresholds by name and language, excluded classes."""

from __future__ import annotations

import pytest
from labelled_texts import labelled_rows, write_rows

from foresail.curate.document import Document, Drop
from foresail.curate.quality.classify import Classify
from foresail.curate.quality.labels import read_labels
from foresail.curate.quality.training import Training, train_classifier
from foresail.curate.recipe import build_curation
from foresail.recipe.reading.load import RecipeError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    file = write_rows(folder / "labels.jsonl", labelled_rows(500))
    classifier, _ = train_classifier(read_labels(file), folder, Training(bits=13))
    classifier.save(folder / "quality.npz")
    return str(folder / "quality.npz")


def test_predictions_are_metadata_and_thresholds_drop(model: str) -> None:
    rows = labelled_rows(60, seed=3)
    documents = [Document(id=str(n), text=row["text"], metadata={"page": n}) for n, row in enumerate(rows)]
    free = Classify(model=model).open()
    strict = Classify(
        model=model, rules=[{"name": "fluency", "least": 1.5}, {"name": "domain", "exclude": ["cooking"]}]
    ).open()
    reasons = set()
    for document, row in zip(documents, rows, strict=True):
        before = free(document)
        assert isinstance(before, Document) and before.metadata["page"] == document.metadata["page"]
        assert (
            before.metadata["domain"] == row["labels"]["domain"]
            and before.metadata["domain_probability"] > 0.5
        )
        after = strict(document)
        if isinstance(after, Drop):
            reasons.add(after.reason)
            assert before.metadata["fluency"] < 1.5 or before.metadata["domain"] == "cooking"
        else:
            assert after == before and after.metadata["fluency"] >= 1.5
    assert reasons == {"low_fluency", "domain_cooking"}


def test_a_language_may_have_thresholds_of_its_own(model: str) -> None:
    rules = [{"name": "fluency", "least": 3.0}, {"name": "fluency", "least": 0.0, "language": "th"}]
    step = Classify(model=model, rules=rules).open()
    text = labelled_rows(1)[0]["text"]
    assert isinstance(step(Document(id="a", text=text, metadata={"language": "th"})), Document)
    assert step(Document(id="a", text=text, metadata={"language": "id"})).reason == "low_fluency"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"name": "fluent", "least": 1.0}, "gives no score fluent"),
        ({"name": "domain", "least": 1.0}, "gives no score domain"),
        ({"name": "x", "least": 1.0, "language": "id"}, "gives no score x"),
        ({"name": "fluency", "exclude": ["a"]}, "gives no class fluency"),
        ({"name": "domain", "exclude": ["sports"]}, "domain has no class sports"),
    ],
)
def test_rules_must_name_what_the_model_predicts(model: str, rule: dict[str, object], message: str) -> None:
    entry = {"name": "classify", "model": model, "rules": [rule]}
    recipe = build_curation({"out": "x", "source": [{"path": "in"}], "step": [entry]})
    with pytest.raises(ValueError, match=message):
        recipe.steps[0].settings.open()


def test_recipes_are_checked() -> None:
    rule = {"name": "fluency"}
    for keys, message in (({}, "model"), ({"model": "q.npz", "rules": [rule]}, "write least for a score")):
        with pytest.raises(RecipeError, match=message):
            build_curation({"out": "x", "source": [{"path": "in"}], "step": [{"name": "classify", **keys}]})
