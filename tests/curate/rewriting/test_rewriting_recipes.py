"""The recipes of docs/curate-rewriting.md load."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from foresail.curate.recipe import build_curation
from foresail.curate.rewriting.styles import load_styles

PAGE = (Path(__file__).parents[3] / "docs" / "curate-rewriting.md").read_text(encoding="utf-8")


def test_the_recipes_of_the_page_load(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    recipes = [block for block in blocks if "[[source]]" in block]
    assert recipes
    for block in recipes:
        build_curation(tomllib.loads(block))
    (tmp_path / "styles.toml").write_text(next(block for block in blocks if "[[style]]" in block))
    assert [*load_styles(str(tmp_path / "styles.toml"))] == ["pirate"]
