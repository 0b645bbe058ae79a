"""A test script as text while it runs: which of its expressions is being evaluated, and what stands around it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from types import CodeType, FrameType

TEST = "<test>"  # what a script's code calls its file
Span = tuple[int, int, int, int]  # first line, first column, last line, last column
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp, ast.ClassDef, ast.Module)


class Text:
    """A script's tree, with the way from each node up. Made on first need: most tests never ask."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.known: dict[tuple[CodeType, int], ast.AST | None] = {}

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.script)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def expressions(self) -> list[tuple[Span, ast.AST]]:
        """Outer ones first, so that the last that fits is the innermost."""
        return [(span(node), node) for node in ast.walk(self.tree) if isinstance(node, ast.expr)]

    def node_at(self, frame: FrameType) -> ast.AST | None:
        """The innermost expression that holds what the frame is at; None where the interpreter does not say."""
        place = frame.f_code, frame.f_lasti
        if place not in self.known:
            self.known[place] = self.find_node(frame)
        return self.known[place]

    def find_node(self, frame: FrameType) -> ast.AST | None:
        position = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        first, last, start, end = position
        if first is None or last is None or start is None or end is None:
            return None
        innermost = None
        for (from_line, from_column, to_line, to_column), node in self.expressions:
            if (from_line, from_column) <= (first, start) and (last, end) <= (to_line, to_column):
                innermost = node
        return innermost

    def way_up(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """(child, parent) from a node up to the function it stands in, that one included."""
        while node in self.parents and not isinstance(node, SCOPES):
            yield node, self.parents[node]
            node = self.parents[node]

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, lambda or module around a node."""
        while node in self.parents and (not isinstance(node, SCOPES) or isinstance(node, ast.GeneratorExp)):
            node = self.parents[node]
        return node

    def line(self, frame: FrameType) -> str:
        lines = self.script.splitlines()
        return lines[frame.f_lineno - 1].strip() if 0 < frame.f_lineno <= len(lines) else ""


def span(node: ast.AST) -> Span:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def script_frames() -> list[FrameType]:
    """Frames of the script, innermost first, wherever this is called from."""
    frame: FrameType | None = sys._getframe()
    frames = []
    while frame is not None:
        if frame.f_code.co_filename == TEST:
            frames.append(frame)
        frame = frame.f_back
    return frames
