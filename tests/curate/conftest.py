"""Shared by tests of curation."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest


@pytest.fixture
def forked_workers_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that work on pieces are forks: each saves a second of imports.

    What they are told and what they write is the same; test_interrupted_curation.py starts them as a run does.
    """
    real = multiprocessing.get_context

    def get_context(method: str | None = None) -> Any:
        return real("fork" if method == "spawn" else method)

    monkeypatch.setattr(multiprocessing, "get_context", get_context)
