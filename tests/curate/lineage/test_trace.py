"""From a rollout back to the raw row, through every file and curation between them."""

import json
from pathlib import Path

import pytest
from shop_tables import write_table

from foresail.curate.curation import curate
from foresail.curate.lineage.trace import trace
from foresail.curate.recipe import build_curation
from foresail.data.made.generators import generate
from foresail.runlog.directory import RunDirectory

pytestmark = pytest.mark.usefixtures("forked_workers_of_pieces")


def write_rows(path: Path, rows: list[dict]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def curate_problems(out: Path, source: str, *steps: str) -> str:
    table = {
        "out": str(out),
        "source": [{"path": source, "holds": "problems", "name": "raw"}],
        "step": [{"name": name} for name in steps],
        "cluster": {"workers": 1},
    }
    curate(build_curation(table))
    return str(out / "documents")


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """raw/sums.jsonl, two curations of it one behind the other, and a run on what is left."""
    house = tmp_path_factory.mktemp("house")
    made = {"by": "calculator", "seed": 7, "from": [{"source": "gone.jsonl", "id": "x1"}]}
    rows = [{"problem": f"What is {n} + {n}?", "answer": str(2 * n), "made": made} for n in range(1, 8)]
    raw = write_rows(house / "raw" / "sums.jsonl", [*rows, rows[2]])
    first = curate_problems(house / "first", raw, "exact_duplicates")
    second = curate_problems(house / "second", first, "minhash", "language")
    run = RunDirectory(house / "run")
    run.path.mkdir()
    run.recipe_path.write_text(f'stage = "rl"\nsteps = 2\n[model]\npath = "m"\n[data]\nsource = "{second}"\n')
    problem = json.loads((house / "raw" / "sums.jsonl").read_text().splitlines()[2])
    sample = {"problem": "raw/sums.jsonl:0", "sample": 3, "status": "correct", "reward": 1.0}
    run.write_rollouts(2, [sample | {"prompt": problem["problem"], "answer": "2", "response": "2"}])
    return house


def titles(sections) -> list[str]:
    return [Path(section.title).name if "/" in section.title else section.title for section in sections]


def test_a_rollout_is_traced_to_the_raw_row(house):
    sections = trace(house / "run", "raw/sums.jsonl:0.3")
    assert titles(sections) == [
        "run, step 2",
        "shard-00000.jsonl.zst:1",
        "second",
        "shard-00000.jsonl.zst",
        "first",
        "sums.jsonl",
        "gone.jsonl, row x1",
    ]
    assert sections[0].lines == (("raw/sums.jsonl:0.3", "correct, reward 1"),)
    assert [label for label, _ in sections[2].lines] == ["read", "1 minhash", "2 language", "kept"]
    assert dict(sections[5].lines)["seed"] == "7"


def test_a_dropped_row_is_told_where_it_went(house):
    last = sum(len(line) for line in (house / "raw" / "sums.jsonl").read_bytes().splitlines(True)[:-1])
    sections = trace(house / "first", f"raw/sums.jsonl:{last}")
    said = dict(sections[0].lines)["1 exact_duplicates"]
    assert said.startswith("dropped, exact_duplicate (repeats raw/sums.jsonl:")


def test_a_generator_ends_the_trace(tmp_path):
    curate_problems(tmp_path / "made", "word-problems:count=20,seed=1", "exact_duplicates")
    (file,) = (tmp_path / "made" / "documents").iterdir()
    import zstandard

    id = json.loads(zstandard.decompress(file.read_bytes(), max_output_size=2**24).splitlines()[4])["id"]
    assert trace(tmp_path / "made", id)[-1].title == "made by word-problems:count=20,seed=1"


def test_a_folder_that_has_moved_still_tells(house, tmp_path):
    moved = tmp_path / "elsewhere"
    (house / "second").rename(moved)
    try:
        sections = trace(moved, "raw/sums.jsonl:0")
    finally:
        moved.rename(house / "second")
    assert titles(sections)[0] == "elsewhere"


def test_what_is_not_there_is_an_error_that_says_where_ids_stand(house):
    with pytest.raises(ValueError, match=r"no row 'maths:1' is in the recipe's data \(.*documents\)"):
        trace(house / "run" / "recipe.toml", "maths:1")
    with pytest.raises(ValueError, match=r"has no row 'x'; name one by its id or its place"):
        trace(house / "raw" / "sums.jsonl", "x")
    with pytest.raises(ValueError, match="there is no episode"):
        trace(house / "run", "maths:1.0")
    with pytest.raises(ValueError, match="overrides and --limit go with a curation's recipe"):
        trace(house / "run", "maths:1", limit=3)


def test_rows_that_name_each_other_end(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        origin = {"source": str(tmp_path / f"{other}.jsonl"), "id": other}
        write_rows(tmp_path / f"{name}.jsonl", [{"id": name, "text": "…", "made": {"from": [origin]}}])
    assert len(trace(tmp_path / "a.jsonl", "a")) == 2


def test_a_made_row_names_the_rows_of_its_table_though_the_table_has_no_rows_to_show(tmp_path):
    write_table(tmp_path / "shop.csv", seed=1)
    source = f"shop-tasks:table={tmp_path / 'shop.csv'},count=5,languages=en"
    problem = generate(source)[2]
    row = {"problem": problem.prompt[0].content, "answer": problem.answer, "made": problem.extra["made"]}
    file = Path(write_rows(tmp_path / "rows.jsonl", [row | {"id": "r1"}]))
    first, *origins = trace(file, "r1")
    assert dict(first.lines)["by"] == "shop-tasks"
    ids = [one["id"] for one in problem.extra["made"]["from"]]
    assert [one.title for one in origins] == [f"{tmp_path / 'shop.csv'}, row {id}" for id in ids]
    assert all(label == "not shown" for one in origins for label, _ in one.lines)


def test_what_is_known_is_shown_where_a_file_of_the_chain_is_gone(house, tmp_path):
    raw = house / "raw" / "sums.jsonl"
    gone = raw.rename(tmp_path / "sums.jsonl")
    sections = trace(house / "run", "raw/sums.jsonl:0.3")
    gone.rename(raw)
    assert titles(sections)[:3] == ["run, step 2", "shard-00000.jsonl.zst:1", "second"]
    (said,) = [dict(section.lines)["not shown"] for section in sections if "not shown" in dict(section.lines)]
    assert "sums.jsonl" in said and "does not exist" in said
    data = (house / "second").rename(house / "elsewhere")
    sections = trace(house / "run", "raw/sums.jsonl:0.3")
    data.rename(house / "second")
    assert sections[0].lines == (("raw/sums.jsonl:0.3", "correct, reward 1"),)
    assert sections[1].lines[0][0] == "not shown"
