"""Actors are refused where the package is another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail import actors


def test_code_is_known_by_its_names_and_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(files: dict[str, str], folder: str) -> str:
        for name, text in files.items():
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text(text)
        monkeypatch.setattr(actors, "PACKAGE", tmp_path / folder)
        return actors.code_here.__wrapped__()

    first = seen({"a.py": "1", "room/b.py": "2", "notes.txt": "x"}, "first")
    assert seen({"a.py": "1", "room/b.py": "2"}, "second") == first
    assert seen({"a.py": "1", "b.py": "2"}, "third") != first
    assert seen({"a.py": "1", "room/b.py": "3"}, "fourth") != first


def test_a_host_with_other_code_says_so() -> None:
    actors.check_code(actors.code_here())
    with pytest.raises(ValueError, match="install the same one on all hosts, and leave it alone"):
        actors.check_code("0" * 64)
