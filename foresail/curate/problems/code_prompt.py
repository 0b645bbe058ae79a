r"""The step `code_prompt`: completes prompts of code problems, which some data sets keep in several columns.

    [[step]]
    name = "code_prompt"

LeetCodeDataset has the task in `meta.question_title`, the signature in `meta.lang_code`, and imports as its prompt:
they become one prompt. MBPP says what a function does and not what it is called: the first test is put behind it.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from foresail.curate.document import Document
from foresail.curate.problems.columns import prompt_of, with_prompt
from foresail.curate.problems.kind import is_maths
from foresail.curate.rows.holds import Holds
from foresail.curate.rows.row import with_row
from foresail.curate.step import Outcome, StepFunction
from foresail.judge.programs.guesses import entry_of
from foresail.judge.programs.rows import read_task
from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.part import Part

COMPLETE = "Complete this Python program:"
TESTED = "The program is tested like this:"
SHOWN_LISTS = ("test_list",)


class CodePrompt(Part):
    """Puts the task, its signature and what must be called into the prompt."""

    takes: ClassVar[Holds] = ("problems",)

    task_key: str = Field(
        "meta.question_title", description="column with the task, where the prompt holds code alone"
    )
    signature_key: str = Field("meta.lang_code", description="column with the signature to complete")
    show_tests: int = Field(
        1, ge=0, description="tests that are shown where the prompt does not name the function they call"
    )

    def open(self) -> StepFunction:
        return partial(complete_prompt, settings=self)


def complete_prompt(document: Document, settings: CodePrompt) -> Outcome:
    row = document.row
    assert row is not None
    if is_maths(document.metadata, row):
        return document
    task, prompt = reach(row, settings.task_key), prompt_of(row)
    if isinstance(task, str) and task.strip() and task not in prompt:
        signature = reach(row, settings.signature_key)
        code = f"{prompt.strip()}\n\n{signature}" if isinstance(signature, str) else prompt.strip()
        text = f"{task.strip()}\n\n{COMPLETE}\n```python\n{code}\n```"
        return with_row(document, with_prompt(row, text))
    return name_function(document, row, prompt, settings.show_tests)


def name_function(document: Document, row: dict[str, Any], prompt: str, count: int) -> Outcome:
    tests: list[Any] = next((row[key] for key in SHOWN_LISTS if isinstance(row.get(key), list)), [])
    shown = [test for test in tests if isinstance(test, str)][:count]
    if not shown:
        return document
    try:
        entry = entry_of(read_task({**row, "prompt": prompt}))
    except ValueError:
        return document
    if entry is None or re.search(rf"\b{re.escape(entry)}\s*\(", prompt):
        return document
    code = "\n".join(shown)
    return with_row(document, with_prompt(row, f"{prompt.strip()}\n\n{TESTED}\n```python\n{code}\n```"))
