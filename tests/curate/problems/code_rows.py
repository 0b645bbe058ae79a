"""Two code problems, of which a constant passes the second; and the bytes of a folder."""

from __future__ import annotations

from pathlib import Path

CODE = [
    {
        "text": "Write a function to add two numbers.",
        "code": "def add(a, b):\n  return a + b",
        "test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"],
    },
    {
        "text": "Write a function to subtract two numbers.",
        "code": "def less(a, b):\n  return a - b",
        "test_list": ["assert less(3, 2) == 1", "assert less(2, 1) == 1"],
    },
]


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
