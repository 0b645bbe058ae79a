"""`foresail data judge`: strict reading, counted failures, going on after a stop."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering_server import AnsweringServer
from typer.testing import CliRunner

from foresail.chat.endpoint import EndpointBroken
from foresail.cli import app
from foresail.curate.judging.labelling import JudgeSettings, label_documents
from foresail.curate.quality.labels import read_labels
from foresail.curate.read.source import Source
from foresail.recipe.tables.answerer import Answerer


def settings_for(server: AnsweringServer, **keys: Any) -> JudgeSettings:
    answerer = Answerer(endpoint=server.url, model="m", parallel=3, patience=keys.pop("patience", 0.1))
    return JudgeSettings(answerer=answerer, **{"rubrics": ("education", "domain"), "batch": 4, **keys})


def write_documents(folder: Path, count: int = 20) -> Source:
    rows = [{"id": f"d{number}", "text": f"text number {number}"} for number in range(count)]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Source(path=(str(folder / "in.jsonl"),))


def answer_all(question: str, count: int) -> str | int:
    """By the number in the text; every fifth answer is none, every seventh is refused."""
    number = int(question.split("text number ")[1].split()[0])
    if number % 5 == 4:
        return "no idea"
    if number % 7 == 6:
        return 400
    seal = question.rpartition('"education_')[2][:6]
    return json.dumps({f"education_{seal}": number % 6, f"domain_{seal}": "maths"})


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer(answer_all) as opened:
        yield opened


def test_labels_are_written_in_order_and_failures_are_counted(
    server: AnsweringServer, tmp_path: Path
) -> None:
    counts = label_documents(write_documents(tmp_path), tmp_path / "out", settings_for(server))
    assert counts == {"judged": 14, "no_json": 4, "refused": 2}
    rows = [json.loads(line) for line in (tmp_path / "out" / "labels.jsonl").open()]
    assert [row["id"] for row in rows] == [f"d{number}" for number in range(20)]
    assert rows[3]["labels"] == {"education": 3, "domain": "maths"} and rows[4]["failed"] == "no_json"
    assert [*read_labels(tmp_path / "out" / "labels.jsonl")][3].labels == {
        "education": 3.0,
        "domain": "maths",
    }


def test_a_stopped_judge_goes_on_with_the_same_bytes(server: AnsweringServer, tmp_path: Path) -> None:
    """Rows and answers are torn at random places, as a kill leaves them."""
    source, settings = write_documents(tmp_path), settings_for(server)
    label_documents(source, tmp_path / "whole", settings)
    whole = (tmp_path / "whole" / "labels.jsonl").read_bytes()
    generator = random.Random(0)
    for attempt in range(6):
        out = tmp_path / f"torn{attempt}"
        label_documents(source, out, settings.model_copy(update={"most": 9}))
        for name in ("labels.jsonl", "judge.answers.jsonl"):
            content = (out / name).read_bytes()
            (out / name).write_bytes(content[: generator.randrange(len(content))])
        answers = (out / "judge.answers.jsonl").read_bytes().count(b"\n")
        asked = len(server.requests)
        label_documents(source, out, settings)
        assert (out / "labels.jsonl").read_bytes() == whole
        most = 20 - answers + 2  # a refusal is asked again without a schema
        assert len(server.requests) - asked <= most


def test_another_rubric_or_model_needs_another_folder_and_another_address_does_not(
    server: AnsweringServer, tmp_path: Path
) -> None:
    source, settings = write_documents(tmp_path, 3), settings_for(server)
    label_documents(source, tmp_path / "out", settings)
    with pytest.raises(ValueError, match="begun with another rubrics"):
        label_documents(source, tmp_path / "out", settings_for(server, rubrics=("fluency",)))
    for change, refused in (({"model": "n"}, True), ({"endpoint": "http://elsewhere:1/v1"}, False)):
        other = settings.model_copy(update={"answerer": settings.answerer.model_copy(update=change)})
        if refused:
            with pytest.raises(ValueError, match="begun with another model"):
                label_documents(source, tmp_path / "out", other)
        else:
            assert label_documents(source, tmp_path / "out", other)["judged"] == 3  # nothing is asked


def test_a_share_is_drawn_by_ids(server: AnsweringServer, tmp_path: Path) -> None:
    source = write_documents(tmp_path, 300)
    counts = label_documents(source, tmp_path / "out", settings_for(server, share=0.3, batch=64))
    assert 60 < sum(counts.values()) < 120


def test_a_server_that_stays_away_or_refuses_the_key_stops_and_says_so(
    server: AnsweringServer, tmp_path: Path
) -> None:
    source, settings = write_documents(tmp_path), settings_for(server, patience=0.0)
    server.answer = lambda question, count: 401
    with pytest.raises(EndpointBroken, match=r"answers with 401.*check address, model and key"):
        label_documents(source, tmp_path / "out", settings)
    server.answer, server.dead_from = answer_all, len(server.requests) + 9
    with pytest.raises(EndpointBroken, match=r"answers with 503.*it goes on"):
        label_documents(source, tmp_path / "out", settings)
    server.dead_from = None
    assert label_documents(source, tmp_path / "out", settings) == {"judged": 14, "no_json": 4, "refused": 2}


def test_the_command_judges_by_a_server(server: AnsweringServer, tmp_path: Path) -> None:
    write_documents(tmp_path)
    out = tmp_path / "out"
    arguments = ["data", "judge", str(tmp_path / "in.jsonl"), "--out", str(out), "--endpoint", server.url]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code and "--model" in str(refused.exception)
    arguments += ["--model", "m", "--rubric", "education", "--rubric", "domain"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "14 judged, failed: no_json 4, refused 2" in result.output
