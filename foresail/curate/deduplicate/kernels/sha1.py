"""SHA-1 of LANES messages at once, as LLVM's vectors: `compress` and `hash_blocks` are called by compiled code.

Block and state stay in registers; numba's loops over rows of an array keep them in memory, which takes eight times
as long. LLVM cuts the vectors to those of the machine: one register with AVX-512, two with AVX2, four with NEON.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 16
# rows of `work`, a number of LANES each: 16 words of a block, h0 to h4, all bits where a lane has this block
CHAIN = 16 * LANES
WITHIN = 21 * LANES
LONG = 22 * LANES
CHAINED = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
ROUNDS = (0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6)  # constants of 20 rounds each
BLOCK = 64  # bytes

generated: Any = intrinsic
NUMBER, BYTE, PLACE = ir.IntType(32), ir.IntType(8), ir.IntType(64)
VECTOR, BYTES, MASK = ir.VectorType(NUMBER, LANES), ir.VectorType(BYTE, BLOCK), ir.VectorType(NUMBER, BLOCK)


def constant(value: int) -> Any:
    return ir.Constant(VECTOR, [value] * LANES)


def rotated(builder: Any, value: Any, by: int) -> Any:
    return builder.or_(builder.shl(value, constant(by)), builder.lshr(value, constant(32 - by)))


def rounds(builder: Any, block: list[Any], state: list[Any]) -> list[Any]:
    """The state after the 80 rounds."""
    words = [*block]
    a, b, c, d, e = state
    for t in range(80):
        if t >= 16:
            mixed = builder.xor(words[t - 3], words[t - 8])
            mixed = builder.xor(mixed, builder.xor(words[t - 14], words[t - 16]))
            words.append(rotated(builder, mixed, 1))
        if t < 20:
            chosen = builder.xor(d, builder.and_(b, builder.xor(c, d)))
        elif 40 <= t < 60:
            chosen = builder.or_(builder.and_(b, c), builder.and_(d, builder.or_(b, c)))
        else:
            chosen = builder.xor(builder.xor(b, c), d)
        known = builder.add(builder.add(e, words[t]), constant(ROUNDS[t // 20]))
        new = builder.add(builder.add(rotated(builder, a, 5), chosen), known)
        a, b, c, d, e = new, a, rotated(builder, b, 30), c, d
    return [a, b, c, d, e]


def row_of(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Where LANES numbers of an array begin."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), VECTOR.as_pointer())


def read_row(context: Any, builder: Any, kind: Any, array: Any, row: int) -> Any:
    place = ir.Constant(PLACE, row * LANES)
    value = builder.load(row_of(context, builder, kind, array, place))
    value.align = 4
    return value


@generated
def compress(typing_context: Any, work: Any) -> Any:
    """compress(work): the next state of all lanes that have this block."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = [read_row(context, builder, work, arguments[0], row) for row in range(16)]
        before = [read_row(context, builder, work, arguments[0], CHAIN // LANES + row) for row in range(5)]
        within = read_row(context, builder, work, arguments[0], WITHIN // LANES)
        for row, new in enumerate(rounds(builder, block, before)):
            place = ir.Constant(PLACE, CHAIN + row * LANES)
            after = builder.add(before[row], builder.and_(new, within))
            builder.store(after, row_of(context, builder, work, arguments[0], place)).align = 4
        return context.get_dummy_value()

    return types.void(work), generate


def read_message(builder: Any, text: Any, start: Any, size: Any) -> Any:
    """A padded message of at most 55 bytes as one block, big-endian; it reads 64 bytes."""
    found = builder.load(builder.bitcast(builder.gep(text, [start]), BYTES.as_pointer()))
    found.align = 1
    places = ir.Constant(BYTES, [*range(BLOCK)])
    first = builder.insert_element(
        ir.Constant(BYTES, ir.Undefined), builder.trunc(size, BYTE), ir.Constant(NUMBER, 0)
    )
    sizes = builder.shuffle_vector(first, first, ir.Constant(MASK, [0] * BLOCK))
    end = builder.select(
        builder.icmp_unsigned("==", places, sizes),
        ir.Constant(BYTES, [0x80] * BLOCK),
        ir.Constant(BYTES, [0] * BLOCK),
    )
    padded = builder.select(builder.icmp_unsigned("<", places, sizes), found, end)
    turned = [place ^ 3 for place in range(BLOCK)]
    words = builder.bitcast(builder.shuffle_vector(padded, padded, ir.Constant(MASK, turned)), VECTOR)
    bits = builder.shl(builder.trunc(size, NUMBER), ir.Constant(NUMBER, 3))
    return builder.insert_element(words, bits, ir.Constant(NUMBER, 15))


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Word t of all lanes instead of all words of a lane: pairs of rows are interleaved four times."""
    size = len(rows)
    low = [number // 2 + number % 2 * size for number in range(size)]
    high = [place + size // 2 for place in low]
    for _ in range(size.bit_length() - 1):
        pairs = [*zip(rows[: size // 2], rows[size // 2 :], strict=True)]
        rows = [
            builder.shuffle_vector(one, other, ir.Constant(VECTOR, places))
            for one, other in pairs
            for places in (low, high)
        ]
    return rows


@generated
def hash_blocks(typing_context: Any, text: Any, starts: Any, sizes: Any, begin: Any, hashes: Any) -> Any:
    """hash_blocks(text, starts, sizes, begin, hashes): mixed hashes of LANES messages of at most 55 bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = (text, starts, sizes, hashes)
        values = (*arguments[:3], arguments[4])
        content, starts_at, sizes_at, _ = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(kinds, values, strict=True)
        )
        messages = []
        for lane in range(LANES):
            place = builder.add(arguments[3], ir.Constant(arguments[3].type, lane))
            start, size = (builder.load(builder.gep(array, [place])) for array in (starts_at, sizes_at))
            messages.append(read_message(builder, content, start, size))
        block = transposed(builder, messages)
        first = rounds(builder, block, [constant(number) for number in CHAINED])[0]
        value = builder.add(first, constant(CHAINED[0]))
        turned = builder.and_(rotated(builder, value, 8), constant(0x00FF00FF))
        value = builder.or_(turned, builder.and_(rotated(builder, value, 24), constant(0xFF00FF00)))
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # as `finalize` has it
            value = builder.xor(value, builder.lshr(value, constant(shift)))
            value = builder.mul(value, constant(factor))
        value = builder.xor(value, builder.lshr(value, constant(16)))
        place = row_of(context, builder, hashes, arguments[4], arguments[3])
        builder.store(value, place).align = 4
        return context.get_dummy_value()

    return types.void(text, starts, sizes, begin, hashes), generate
