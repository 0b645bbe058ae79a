"""What step_kills.py kills: a recipe for every step, commands that ask, and when each is at work.

JOBS["balance"].recipe(folder, out, url, 2) -> the recipe's text
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kill_moments import curation_at_work, has_rows

ANSWERER = 'answerer = {endpoint = "{url}", model = "m", parallel = 8, patience = 600.0}'
MODEL = 'model = "{folder}/model"\ndevice = "cpu"'


@dataclass(frozen=True, kw_only=True)
class Curation:
    """`steps`: tables, the last is of the step that is killed; without any it is the source. {url} is put in."""

    source: str
    holds: str
    steps: Sequence[str] = ()
    asks: bool = False

    def command(self, folder: Path, out: Path, url: str, workers: int) -> list[str]:
        recipe = out.with_suffix(".toml")
        recipe.write_text(self.recipe(folder, out, url, workers))
        return [sys.executable, "-m", "foresail", "data", "curate", str(recipe)]

    def recipe(self, folder: Path, out: Path, url: str, workers: int) -> str:
        steps = "".join(f"[[step]]\n{step}\n\n" for step in self.steps)
        text = (
            f'out = "{out}"\n\n[[source]]\npath = "{self.source}"\nholds = "{self.holds}"\n\n{steps}'
            f'[[sink]]\nkind = "jsonl"\n\n[cluster]\nworkers = {workers}\n'
        )
        return text.replace("{folder}", str(folder)).replace("{url}", url)

    def is_at_work(self, out: Path) -> bool:
        return curation_at_work(out, self.label)

    @property
    def label(self) -> str:
        if not self.steps:
            return "read"
        name = self.steps[-1].partition('name = "')[2].partition('"')[0]
        return f"{len(self.steps)} {name}"


@dataclass(frozen=True, kw_only=True)
class Command:
    """Words after `foresail data`; `rows`: files that grow while it is at work."""

    words: str
    rows: str
    asks: bool = False

    def command(self, folder: Path, out: Path, url: str, workers: int) -> list[str]:
        text = self.words.replace("{folder}", str(folder)).replace("{url}", url).replace("{out}", str(out))
        return [sys.executable, "-m", "foresail", "data", *text.split()]

    def is_at_work(self, out: Path) -> bool:
        return has_rows(out, self.rows)


Job = Curation | Command


def problems(*steps: str, source: str = "{folder}/problems", asks: bool = False) -> Curation:
    return Curation(source=source, holds="problems", steps=steps, asks=asks)


def chats(*steps: str, source: str = "{folder}/chats", asks: bool = False) -> Curation:
    return Curation(source=source, holds="conversations", steps=steps, asks=asks)


KIND = 'name = "problem_kind"'
JUDGE = "--endpoint {url} --model m --parallel 8 --patience 600"
JOBS: dict[str, Job] = {
    "balance": problems(KIND, 'name = "balance"\ntotal = 900'),
    "cap_responses": chats('name = "cap_responses"\nbest = "quality"'),
    "check_answers": problems(KIND, 'name = "check_answers"', source="{folder}/few-problems"),
    "check_programs": problems(KIND, 'name = "check_programs"', source="{folder}/code"),
    "classify": chats('name = "classify"\nmodel = "{folder}/labels.npz"'),
    "code_prompt": problems(KIND, 'name = "code_prompt"', source="{folder}/code"),
    "decontaminate": problems('name = "decontaminate"\nagainst = ["{folder}/benchmark.jsonl"]'),
    "exact_duplicates": chats('name = "exact_duplicates"'),
    "judge": chats(
        f'name = "judge"\nrubrics = [{{name = "quality", least = 3}}]\n{ANSWERER}',
        source="{folder}/few-chats",
        asks=True,
    ),
    "majority": problems(KIND, 'name = "majority"\nresponses = "{folder}/samples.jsonl"'),
    "minhash": chats('name = "minhash"\nthreshold = 0.5'),
    "pass_rates": problems('name = "pass_rates"\nkey = "rate"\nmost = 0.8'),
    "problem_form": problems(KIND, 'name = "problem_form"'),
    "problem_kind": problems(KIND),
    "reformulate": problems(
        f'name = "reformulate"\nstyles = ["formal", "casual"]\n{ANSWERER}', source="{folder}/pens", asks=True
    ),
    "same_problems": problems(KIND, 'name = "same_problems"'),
    "select_diverse": chats(f'name = "select_diverse"\nshare = 0.3\n{MODEL}', source="{folder}/few-chats"),
    "semantic_duplicates": chats(
        f'name = "semantic_duplicates"\nthreshold = 0.9999\n{MODEL}', source="{folder}/few-chats"
    ),
    "tool_calls": chats('name = "tool_calls"\ncut = true'),
    "translate": problems(
        f'name = "translate"\nlanguages = ["id"]\n{ANSWERER}', source="{folder}/pens", asks=True
    ),
    "shop-tasks": problems(source="shop-tasks:table={folder}/shop.csv,count=3000,seed=1"),
    "passage-qa": problems(
        source="passage-qa:file={folder}/qa.jsonl,corpus={folder}/corpus.jsonl,count=1200,seed=1"
    ),
    "sample-solutions": Command(
        words="sample-solutions {folder}/model --data {folder}/few-problems/0.jsonl --samples 4 "
        "--max-new-tokens 24 --device cpu --grader {folder}/grader.py:grade --output {out}",
        rows="sampled.jsonl",
    ),
    "data judge": Command(
        words=f"judge {{folder}}/few-chats --holds conversations --rubric quality --out {{out}} {JUDGE}",
        rows="*.answers.jsonl",
        asks=True,
    ),
    "data judge --pairwise": Command(
        words=f"judge {{folder}}/pairs.jsonl --pairwise --out {{out}} {JUDGE}",
        rows="*.answers.jsonl",
        asks=True,
    ),
}
