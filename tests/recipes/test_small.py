"""From texts to a reasoner in miniature: every part of recipes/small runs, once, and goes on where it was."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import prepare
import pytest
import run
from hypothesis import given
from hypothesis import strategies as st

FOLDER = Path(run.__file__).parent
TABLES = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3))
SHARED = Path(__file__).parents[3] / "shared/data"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("small")
    assert run.main(["--with", "tiny", "--out", str(out), "--workers", "1"], note=lambda text: None) == 0
    return out


def test_all_stages_run_one_after_the_other(made: Path) -> None:
    summary = json.loads((made / "summary.json").read_text())
    assert [*summary["loss"]] == ["web", "math", "code"]
    assert summary["long_context"] == {"niah_single": 0}
    assert {*summary["accuracy_after"]} == {"arithmetic/acc/mean@1", "word-problems/acc/mean@1"}
    lines = [json.loads(line) for line in (made / "pretrain/metrics.jsonl").read_text().splitlines()]
    assert [line["train/stage"] for line in lines] == [1, 1, 2, 3]
    recipe = tomllib.loads((made / "rl/recipe.toml").read_text())
    assert recipe["model"]["path"] == summary["checkpoints"]["sft"]
    assert (made / "long-context/heat-map.png").exists()


def test_what_is_done_is_not_done_again(made: Path) -> None:
    files = [
        made / "tokenizer/tokenizer.json",
        made / "corpora/web/manifest.json",
        *made.glob("*/metrics.jsonl"),
    ]
    before = [(file.stat().st_mtime_ns, file.read_bytes()) for file in files]
    told: list[str] = []
    assert run.main(["--with", "tiny", "--out", str(made), "--workers", "1"], note=told.append) == 0
    assert [content for _, content in before] == [file.read_bytes() for file in files]
    assert before[:2] == [(file.stat().st_mtime_ns, file.read_bytes()) for file in files[:2]]
    assert (
        json.loads(told[-1])["checkpoints"] == json.loads((made / "summary.json").read_text())["checkpoints"]
    )


@pytest.mark.parametrize("changes", [(), ("moe",), ("mtp",), ("tiny", "moe"), ("tiny", "mtp")])
def test_recipes_and_their_variants_are_without_mistakes(made: Path, changes: tuple[str, ...]) -> None:
    settings = run.read_table(FOLDER / "settings.toml", made)
    for name in changes:
        settings = run.merged(settings, run.read_table(FOLDER / f"{name}.toml", made))
    small = run.Small(out=made, data=None, settings=settings, workers=1)
    pretrain = small.recipe("pretrain", [])
    assert (pretrain.model.shape.experts is not None) == ("moe" in changes)
    assert bool(pretrain.model.shape.mtp) == ("mtp" in changes)
    lengths = [stage.length for stage in pretrain.stages]
    assert lengths == ([512, 512, 4096] if "tiny" not in changes else [256, 256, 512])
    assert pretrain.stages[0].tokens >= (10**8 if "tiny" not in changes else 1)


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("abc"), st.integers()),
)
def test_changes_are_laid_over_tables_and_lists_of_tables(
    table: dict[str, int], changes: dict[str, int]
) -> None:
    assert run.merged(table, changes) == table | changes
    assert run.merged({"x": [table, {}]}, {"x": [changes, {}]}) == {"x": [table | changes, {}]}
    assert run.merged([table], [table, changes]) == [table, changes]  # of another number: replaced
    assert run.merged({"x": [1, 2]}, {"x": [3]}) == {"x": [3]}


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not here")
def test_problems_of_the_shared_data_become_documents() -> None:
    for name, files in prepare.PROBLEMS.items():
        first = next(prepare.solved(SHARED / name, files))
        assert "\n\n" in first and len(first) > 100


def test_one_document_in_fifty_is_held_out() -> None:
    learned, kept = prepare.split(str(number) for number in range(500))
    assert len(kept) == 10 and sorted([*learned, *kept], key=int) == [str(number) for number in range(500)]
