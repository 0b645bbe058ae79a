"""A whole curation: counts by reason, outputs, resume, and what ends it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_recipe import output_files, small_recipe, step, write_inputs

from foresail.curate.curation import curate
from foresail.curate.recipe import build_curation, load_curation
from foresail.curate.run.against import compare
from foresail.curate.run.why import explain
from foresail.data.zst import open_zst
from foresail.recipe.reading.load import RecipeError

pytestmark = pytest.mark.usefixtures("forked_workers_of_pieces")


def rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(folder.rglob("*.zst")) for line in open_zst(file)]


def test_every_document_is_kept_or_counted_with_its_reason(tmp_path: Path) -> None:
    summary = curate(small_recipe(tmp_path))
    texts = [json.loads(line)["text"] for file in "ab" for line in (tmp_path / "in" / f"{file}.jsonl").open()]
    long = [text for text in texts if len(text) >= 8]
    reasons = {label.rpartition(":")[2]: counts for label, counts in summary.dropped().items()}
    assert reasons == {
        "short": {"short": len(texts) - len(long)},
        "Exact": {"repeated": len(long) - len({*long})},
    }
    assert summary.inputs == len(texts)
    written = rows(tmp_path / "out" / "documents")
    assert "".join(str(row["text"]) for row in written) == "".join(dict.fromkeys(long))
    assert [row["id"] for row in written[:2]] == ["a0#1", "a0#2"] and written[0]["metadata"] == {"page": 0}
    assert summary.decided == {summary.steps[2]: {"removed": len(long) - len({*long})}}


def test_the_number_of_processes_changes_no_byte(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    curate(small_recipe(tmp_path, out=str(tmp_path / "two")))
    curate(small_recipe(tmp_path, out=str(tmp_path / "one"), cluster={"workers": 1}))
    assert output_files(tmp_path / "one") == output_files(tmp_path / "two")


def test_a_finished_curation_is_not_run_again(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    recipe = small_recipe(tmp_path, step(tmp_path, "noted", file=str(notes)), step(tmp_path, "short"))
    first = curate(recipe)
    read = notes.read_text()
    assert curate(recipe).as_json() == first.as_json()
    assert notes.read_text() == read and len(read.splitlines()) == 80


def test_a_document_that_kills_its_process_twice_is_dropped(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    with (tmp_path / "in" / "a.jsonl").open("a") as file:
        file.write(json.dumps({"id": "bad", "text": "a text with KILL in it"}) + "\n")
    summary = curate(small_recipe(tmp_path, step(tmp_path, "short"), step(tmp_path, "deadly")))
    assert summary.dropped()[summary.steps[2]] == {"crashed": 1}
    assert summary.inputs == 81
    assert (summary.phases[0].examples[f"{summary.steps[2]}: crashed"][0]["id"]) == "bad"
    recipe = small_recipe(tmp_path, step(tmp_path, "short"), step(tmp_path, "deadly"))
    assert explain(recipe, "bad")[-1].endswith(
        "deadly: dropped, crashed (it ended its process twice (SIGKILL))"
    )


def test_a_document_that_computes_without_end_is_dropped(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    with (tmp_path / "in" / "b.jsonl").open("a") as file:
        file.write(json.dumps({"id": "bad", "text": "a text with LOOP in it"}) + "\n")
    summary = curate(small_recipe(tmp_path, step(tmp_path, "endless"), max_cpu_seconds=0.6))
    assert summary.dropped() == {summary.steps[1]: {"stalled": 1}} and summary.kept == 80


def test_a_users_step_that_fails_stops_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    recipe = small_recipe(tmp_path, step(tmp_path, "short"), step(tmp_path, "broken"))
    with pytest.raises(
        ValueError, match=r"broken failed on [ab]0: AttributeError: .*no_such_attribute.*correct"
    ):
        curate(recipe)
    with pytest.raises(ValueError, match=r"nothing returned NoneType for [ab]0; return a Document"):
        curate(small_recipe(tmp_path, step(tmp_path, "nothing"), out=str(tmp_path / "other")))


def test_a_folder_goes_on_only_with_the_same_recipe_and_sources(tmp_path: Path) -> None:
    curate(small_recipe(tmp_path))
    with pytest.raises(ValueError, match=r"another least of step#1 .*choose another folder with out="):
        curate(small_recipe(tmp_path, step(tmp_path, "short", least=4), step(tmp_path, "Exact")))
    (tmp_path / "in" / "b.jsonl").write_text('{"text": "another text"}\n')
    with pytest.raises(ValueError, match="other content of in/b"):
        curate(small_recipe(tmp_path))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("x")
    with pytest.raises(FileExistsError, match=r"holds thesis.tex"):
        curate(small_recipe(tmp_path, out=str(tmp_path / "foreign")))


def test_a_changed_ledger_is_refused(tmp_path: Path) -> None:
    recipe = small_recipe(tmp_path)
    curate(recipe)
    ledger = tmp_path / "out" / "work" / "0" / "00000.ledger.jsonl.zst"
    ledger.write_bytes(ledger.read_bytes()[:-9])
    for receipt in (tmp_path / "out" / "work" / "1").glob("*"):
        receipt.unlink()
    with pytest.raises(ValueError, match="its checksum differs"):
        curate(recipe)


def test_why_tells_every_steps_verdict(tmp_path: Path) -> None:
    recipe = small_recipe(tmp_path)
    for file, names in (("a", ["a0"]), ("b", ["b7", "b8"])):
        path = tmp_path / "in" / f"{file}.jsonl"
        lines = [json.loads(line) for line in path.open()]
        path.write_text(
            "".join(
                json.dumps({**row, **({"url": "http://a.org/"} if row["id"] in names else {})}) + "\n"
                for row in lines
            )
        )
    curate(recipe)
    assert [line.partition(":")[0] for line in explain(recipe, "a0")] == [
        "read",
        *(entry.label.partition(":")[0] for entry in recipe.steps[:2]),
        *([recipe.steps[2].label.partition(":")[0]] * 2),
        "kept",
        "kept",
    ]
    assert explain(recipe, "a3")[-1].endswith("short: dropped, short (5 characters)")
    assert explain(recipe, "b2")[-1].endswith("Exact: dropped, repeated (repeats a2)")
    assert explain(recipe, "a0#2")[0].startswith("read: a0,")
    assert explain(recipe, "http://a.org/")[0].startswith("read: a0,")
    assert explain(recipe, "http://a.org/")[-1] == "same address: b7, b8"
    with pytest.raises(ValueError, match=r"no document of .* has the id or address 'zz'"):
        explain(recipe, "zz")


def test_against_names_gained_and_lost_documents(tmp_path: Path) -> None:
    old = small_recipe(tmp_path, step(tmp_path, "short"), out=str(tmp_path / "old"))
    new = small_recipe(tmp_path, step(tmp_path, "Exact"), out=str(tmp_path / "new"))
    curate(old)
    curate(new)
    comparison = compare(new, old)
    assert sum(comparison.gained.values()) == 1  # "short", once
    assert [reason.rpartition(": ")[2] for reason in comparison.lost] == ["repeated"]
    for change, counts in (("gained", comparison.gained), ("lost", comparison.lost)):
        changes = [json.loads(line) for line in (comparison.folder / f"{change}.jsonl").open()]
        assert len(changes) == sum(counts.values())
        assert {"id", "reason", "detail", "text"} == {*changes[0]}
    assert changes[0]["detail"].startswith("repeats ") and comparison.changed == 0
    assert comparison.same + sum(comparison.gained.values()) == len(rows(tmp_path / "new" / "documents"))


def test_against_finds_the_reason_of_documents_that_a_step_divided(tmp_path: Path) -> None:
    halves = step(tmp_path, "halves")
    new = small_recipe(tmp_path, halves, out=str(tmp_path / "new"), cluster={"workers": 1})
    old = small_recipe(
        tmp_path, step(tmp_path, "short"), halves, out=str(tmp_path / "old"), cluster={"workers": 1}
    )
    curate(new)
    curate(old)
    comparison = compare(new, old)
    assert [reason.rpartition(": ")[2] for reason in comparison.gained] == ["short"]
    assert not comparison.lost and "kept by both: 132, 0 of them with another text" in comparison.describe()


def test_outputs_by_language_and_as_parquet(tmp_path: Path) -> None:
    sinks = [
        {"kind": "jsonl", "by": "page", "compression": "none"},
        {"kind": "parquet", "shard_mib": 1},
    ]
    summary = curate(small_recipe(tmp_path, step(tmp_path, "short"), sink=sinks))
    assert summary.outputs["documents"]["documents"]["0"] == 2
    assert (tmp_path / "out" / "documents" / "0" / "shard-00000.jsonl").read_text().count("\n") == 2
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "out" / "parquet" / "shard-00000.parquet")
    assert table.num_rows == summary.kept and json.loads(table["metadata"][0].as_py()) == {"page": 0}


def test_a_recipe_with_mistakes_names_them_all(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    table = {
        "out": "o",
        "workers": 3,
        "step": [
            {"name": "extrct"},
            {"least": 3},
            step(tmp_path, "short", most=3),
            step(tmp_path, "nowhere"),
        ],
    }
    with pytest.raises(RecipeError) as raised:
        build_curation(table, "web.toml", ["step#9.least=3"])
    lines = str(raised.value).splitlines()
    assert lines[0] == "web.toml: 7 mistakes"
    for part in (
        "step#9.least: there are 4 steps",
        "no step 'extrct'",
        "step#2: name is missing",
        "unexpected",
    ):
        assert any(part in line for line in lines), part
    assert any("nowhere is no function" in line for line in lines)
    assert any("workers: unknown key" in line for line in lines)


def test_overrides_reach_steps(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    (tmp_path / "r.toml").write_text(
        f'out = "o"\n[[source]]\npath = "{tmp_path}/in"\n[[step]]\nname = "{tmp_path}/steps.py:short"\n'
    )
    loaded = load_curation(tmp_path / "r.toml", ["step#1.least=3", "out=other"])
    assert loaded.steps[0].keys == {"least": 3} and loaded.out == Path("other")
