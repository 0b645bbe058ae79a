"""GSM8K's solutions as conversations."""

import gzip
import json
import re
from pathlib import Path

import pytest
from gsm8k_conversations import clean, write_conversations

from foresail.data.chats.conversations import load_conversations
from foresail.data.problems.problems import load_problems
from foresail.maths.verdict import grade
from foresail.recipe.tables.parts import Problems

SHARED = Path(__file__).parents[3] / "shared/data/math/gsm8k/train.jsonl.gz"


def test_calculator_marks_go_and_the_rest_stays() -> None:
    solution = "She makes 9 * 2 = $<<9*2=18>>18 a day.\nThat is 18*100=<<18*100=1800>>1,800.\n#### 1,800"
    assert clean(solution) == "She makes 9 * 2 = $18 a day.\nThat is 18*100=1,800.\n#### 1800"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl:1 is no row of GSM8K; it needs a question"):
        write_conversations(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data is absent")
def test_every_training_solution_passes_its_own_grader(tmp_path: Path) -> None:
    write_conversations(SHARED, tmp_path / "sft.jsonl")
    conversations = load_conversations(tmp_path / "sft.jsonl")
    problems = load_problems(Problems(source=str(SHARED)))
    with gzip.open(SHARED, "rt") as file:
        assert len(conversations) == len(problems) == sum(1 for _ in file) == 7473
    for (question, solution), problem in zip(conversations, problems, strict=True):
        assert question == problem.prompt[0]
        assert not re.search(r"<<|>>", solution.content)
        assert grade(solution.content, problem.answer, accept="stated").status == "correct"
    assert json.loads((tmp_path / "sft.jsonl").read_text().partition("\n")[0]).keys() == {
        "prompt",
        "completion",
    }
