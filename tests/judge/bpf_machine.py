"""Runs a seccomp filter by hand, step by step: an independent reading of what the assembler wrote."""

from __future__ import annotations

import struct

from foresail.judge.sandbox.seccomp import ARCHITECTURE

ACTIONS = {0x7FFF0000: "allow", 0x80000000: "kill", 0x00050001: "deny", 0x00050026: "absent"}


def run_filter(
    steps: bytes, number: int, arguments: tuple[int, ...], architecture: int = ARCHITECTURE
) -> str:
    """run_filter(filter, 39, …) -> "allow": what the kernel of a machine would do with system call 39."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments)
    program = list(struct.iter_unpack("=HBBI", steps))
    at, word = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x06:
            return ACTIONS[operand]
        if code == 0x20:
            (word,) = struct.unpack_from("=I", data, operand)
        else:
            holds = {
                0x15: word == operand,
                0x25: word > operand,
                0x35: word >= operand,
                0x45: bool(word & operand),
            }[code]
            at += if_true if holds else if_false
