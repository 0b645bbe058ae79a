"""Sources of a recipe: one table or several, what is written back, overrides of one of them, and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.reading.run_folder import differing_keys
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import ProblemSource, reward_for

HEAD = 'stage = "rl"\nsteps = 3\nmodel = {path = "m"}\n'
ONE = HEAD + '[data]\nsource = "arithmetic:count=100"\nsuffix = "!"\n'
TWO = (
    HEAD
    + '[[data]]\nsource = "a/train.jsonl"\nname = "a"\nweight = 3\n'
    + '[[data]]\nsource = "arithmetic:count=100"\nweight = 1\ngrader = "exact"\n'
)
CHATS = 'stage = "sft"\nsteps = 3\ndata = "d.jsonl"\nmodel = {path = "m"}\n'


def load(tmp_path: Path, text: str, *overrides: str) -> Stage:
    file = tmp_path / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return load_recipe(file, overrides)


def rl(tmp_path: Path, text: str, *overrides: str) -> Rl:
    recipe = load(tmp_path, text, *overrides)
    assert isinstance(recipe, Rl)
    return recipe


def refuse(tmp_path: Path, text: str, *overrides: str) -> str:
    with pytest.raises(RecipeError) as caught:
        load(tmp_path, text, *overrides)
    return str(caught.value)


def test_one_table_is_a_tuple_of_one_and_is_written_as_one(tmp_path: Path) -> None:
    recipe = rl(tmp_path, ONE)
    assert recipe.data == (ProblemSource(source="arithmetic:count=100", suffix="!"),) and recipe.eval == ()
    text = to_toml(recipe)
    assert "\n[data]  # Problems" in text and "[[data]]" not in text and "\n# eval = none" in text
    assert load(tmp_path, text) == recipe
    assert rl(tmp_path, ONE.replace("[data]", "[[data]]")) == recipe


def test_several_tables_are_a_mixture_and_come_back(tmp_path: Path) -> None:
    recipe = rl(tmp_path, TWO)
    assert [(source.label, source.weight, source.grader) for source in recipe.data] == [
        ("a", 3.0, None),
        ("arithmetic", 1.0, "exact"),
    ]
    assert to_toml(recipe).count("[[data]]") == 2 and load(tmp_path, to_toml(recipe)) == recipe


def test_overrides_reach_one_source_of_one_or_several(tmp_path: Path) -> None:
    assert rl(tmp_path, ONE, "data.source=b.jsonl", "data.limit=7").data[0].model_dump(
        exclude_defaults=True
    ) == {"source": "b.jsonl", "suffix": "!", "limit": 7}
    both = ONE.replace("[data]", "[[data]]")
    assert rl(tmp_path, both, "data.limit=7") == rl(tmp_path, ONE, "data.limit=7")
    assert [source.weight for source in rl(tmp_path, TWO, "data#2.weight=0.5").data] == [3.0, 0.5]
    assert "there are 2 tables [[data]]; say which: data#1 to data#2" in refuse(tmp_path, TWO, "data.limit=1")
    assert "data#3: there are 2 tables [[data]]" in refuse(tmp_path, TWO, "data#3.limit=1")


def test_conversations_may_be_a_path_a_table_or_several(tmp_path: Path) -> None:
    recipe = load(tmp_path, CHATS)
    assert isinstance(recipe, Sft) and recipe.data[0].source == "d.jsonl"
    assert '\ndata = "d.jsonl"  # conversations' in to_toml(recipe)
    assert load(tmp_path, CHATS, "data=2024").sources() == {"data": "2024"}
    dropping = load(tmp_path, CHATS, "data.too_long=drop")
    assert isinstance(dropping, Sft)
    assert (dropping.data[0].source, dropping.data[0].too_long) == ("d.jsonl", "drop")
    assert '[data]  # Conversations to train on.\nsource = "d.jsonl"' in to_toml(dropping)
    assert load(tmp_path, to_toml(dropping)) == dropping


@pytest.mark.parametrize(
    ("text", "overrides", "said"),
    [
        (ONE, ["data.sorce=x"], "data.sorce: unknown key; the nearest is data.source"),
        (ONE, ["data.weight=0"], "data.weight must be greater than 0, not 0"),
        (ONE, ["data.samples=4"], "data.samples: unknown key"),
        (ONE, ["data=5"], "data must be a table ([data]), several ([[data]]), not 5"),
        (ONE, ["data=[]"], "data names no problems; add a table [data]"),
        (HEAD, [], "data is missing; add a table [data]"),
        (HEAD + "[data]\nlimit = 3\n", [], "data.source is missing; set it"),
        (TWO, ["data#2.sorce=x"], "data#2.sorce: unknown key; the nearest is data.source"),
        (TWO, ["data#1.weight=none"], "data#1 has no weight and others have one; set weight in every [[data]]"),
        (TWO, ["data#2.name=a"], 'data#1 has the name "a", and so has another source; give each a name'),
        (TWO, ["data#2.name=a/b"], 'data#2.name: "a/b" cannot be a name in metrics'),
        (TWO, ["data#2.grader=maths"], 'data#2.grader: unknown grader "maths"; did you mean math?'),
        (ONE, ["data.grader=own"], 'data.grader: unknown grader "own"; use one of math, exact, qa, code'),
        (ONE, ["eval.source=x.jsonl", "eval.samples=-1"], "eval.samples must be at least 0, not -1"),
        (CHATS.replace('"d.jsonl"', "[]"), [], "data names no conversations; set data to a file"),
        (CHATS, ["data.too_long=cut"], 'data.too_long must be one of error, drop, split, not "cut"'),
        (CHATS.replace('"d.jsonl"', "5"), [], "data must be a table ([data]), several ([[data]]) or text"),
        (CHATS.replace('data = "d.jsonl"\n', ""), [], "data names no conversations; set data to a file"),
    ],
)  # fmt: skip
def test_mistakes_name_the_source(tmp_path: Path, text: str, overrides: list[str], said: str) -> None:
    assert said in refuse(tmp_path, text, *overrides)


def test_a_mix_of_levels_needs_levels_in_every_source(tmp_path: Path) -> None:
    said = refuse(tmp_path, TWO, "mix=[1,1,0,0,0]", "data#1.difficulty_key=level")
    assert "set data#2.difficulty to a file" in said and "data#1" not in said


def test_a_source_s_grader_takes_the_reward_s_other_settings() -> None:
    reward = Reward(wrong=-1.0, overlong_buffer=4)
    own = reward_for(ProblemSource(source="s", grader="r.py:score"), reward)
    assert (own.grader, own.wrong, own.correct, own.overlong_buffer) == ("r.py:score", 0.0, 1.0, 4)
    assert reward_for(ProblemSource(source="s", grader="exact"), reward).wrong == -1.0
    assert reward_for(ProblemSource(source="s"), reward) is reward


def test_what_differs_is_named_as_it_is_written(tmp_path: Path) -> None:
    one = load(tmp_path, ONE)
    assert differing_keys(one, load(tmp_path, ONE, "data.limit=3")) == ["data.limit"]
    assert differing_keys(load(tmp_path, CHATS), load(tmp_path, CHATS, "data=e.jsonl")) == ["data.source"]
    assert differing_keys(load(tmp_path, TWO), load(tmp_path, TWO, "data#2.weight=2")) == ["data"]


def test_the_preflight_counts_all_sources_and_tells_of_an_early_end(tmp_path: Path) -> None:
    text = ONE.replace("[data]", "[[data]]") + '[[data]]\nsource = "word-problems:count=50"\nlimit = 20\n'
    found = preflight(load(tmp_path, text))
    assert found.num_records == 120 and not any("epochs" in line for line in found.warnings)
    short = preflight(load(tmp_path, text, "data#1.epochs=1", "data#2.epochs=2", "prompts_per_step=64"))
    early = "the run draws 192 prompts and data.epochs allows 140, so it will end early"
    assert any(line.startswith(early) for line in short.warnings)
    few = preflight(load(tmp_path, text, "prompts_per_step=121")).refusals
    assert any("exceeds the 120 problems of" in line for line in few)


def test_an_eval_that_never_comes_is_a_warning(tmp_path: Path) -> None:
    never = preflight(load(tmp_path, ONE, "eval.source=arithmetic:count=9"))
    assert any("eval_every is 0: never" in line for line in never.warnings)
    often = preflight(load(tmp_path, ONE, "eval.source=arithmetic:count=9", "eval_every=2"))
    assert not any("eval_every" in line for line in often.warnings)


def test_the_mixtures_of_the_docs_load(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/data.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```toml\n")[1:]]
    problems, chats = (block for block in blocks if block.startswith("[[data]]"))
    recipe = rl(tmp_path, HEAD + problems)
    assert [source.label for source in recipe.data] == ["gsm8k", "mbpp"]
    assert [(held_out.label, held_out.samples) for held_out in recipe.eval] == [("gsm8k", 0), ("aime24", 8)]
    assert len(rl(tmp_path, HEAD + problems, "data#2.weight=0.5").data) == 2
    sft = load(tmp_path, CHATS.replace('data = "d.jsonl"\n', "") + chats)
    assert list(sft.sources().values()) == ["chats.jsonl", "word-problems:count=2000"]
