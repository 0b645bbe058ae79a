"""MinHash signatures of texts: words, shingles, SHA-1 and permutations in one compiled pass.

Equal bit for bit to datasketch 2 with its defaults, update_batch(shingles(text)): the first four bytes of SHA-1,
mixed once by Murmur's finalizer, then for each permutation the minimum of a·h + b modulo 2³².

Compiled functions that call each other are in this file: numba's cache does not notice a change in another one.
SHA-1 runs on LANES shingles at once, in vector registers (`sha1.py`). Shapes: n documents, P permutations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from foresail.curate.deduplicate.characters import MARK, SEPARATOR, UNSPACED, WORD
from foresail.curate.deduplicate.kernels.sha1 import (
    CHAIN,
    CHAINED,
    LANES,
    LONG,
    WITHIN,
    compress,
    hash_blocks,
)

SHA1_FILE = "46b9a3f3"  # checksum of sha1.py: numba's cache notices a change in this file alone
QUEUES = 3  # shingles of one block of 64 bytes, of two, of more
WINDOW = 128  # tokens of a shingle at most: a ring of so many is kept
QUEUED = 512  # shingles that wait, a multiple of LANES

U32: Any = np.uint32
UP: Any = np.uintp
compiled = njit(cache=True, nogil=True)


@compiled
def rotate(value: Any, by: int) -> Any:
    return U32(U32(value << U32(by)) | (value >> U32(32 - by)))


@compiled
def big_endian_word(text: Any, at: int) -> Any:
    place = UP(at)
    first, second = U32(text[place]) << U32(24), U32(text[place + UP(1)]) << U32(16)
    return U32(first | second | (U32(text[place + UP(2)]) << U32(8)) | U32(text[place + UP(3)]))


@compiled
def load_block(text: Any, start: int, size: int, block: int, lane: int, work: Any) -> None:
    """Block number `block` of the padded message text[start : start + size], into rows of zeros.

    It may read three bytes beyond the end.
    """
    begin = block * 64
    left = size - begin  # negative: only padding
    whole = min(max(left, 0) >> 2, 16)
    for t in range(whole):
        work[UP(t * LANES + lane)] = big_endian_word(text, start + begin + t * 4)
    if 0 <= left < 64:
        rest = U32(8 * (left & 3))
        text_bits = U32(~(U32(0xFFFFFFFF) >> rest))
        word = big_endian_word(text, start + begin + whole * 4) & text_bits
        work[UP(whole * LANES + lane)] = U32(word | (U32(0x80000000) >> rest))
    if left < 56:
        work[UP(14 * LANES + lane)] = U32(size >> 29)
        work[UP(15 * LANES + lane)] = U32((size << 3) & 0xFFFFFFFF)


@compiled
def blocks_of(size: int) -> int:
    return (size + 72) >> 6


@compiled
def hash_lanes(text: Any, starts: Any, sizes: Any, count: int, work: Any, hashes: Any, at: int) -> None:
    """Write the mixed hashes of `count` shingles, at most LANES, to hashes[at:]."""
    longest = 0
    for lane in range(count):
        longest = max(longest, blocks_of(sizes[UP(lane)]))
    for row in range(5):
        for lane in range(LANES):
            work[UP(CHAIN + row * LANES + lane)] = U32(CHAINED[row])
    for block in range(longest):
        for place in range(16 * LANES):
            work[UP(place)] = U32(0)
        for lane in range(count):
            size = sizes[UP(lane)]
            within = block < blocks_of(size)
            work[UP(WITHIN + lane)] = U32(0xFFFFFFFF) if within else U32(0)
            if within:
                load_block(text, starts[UP(lane)], size, block, lane, work)
        compress(work)
    for lane in range(LANES):  # those beyond `count` are written over, or not read
        hashes[UP(at + lane)] = finalize(work[UP(CHAIN + lane)])


@compiled
def finalize(value: Any) -> Any:
    """datasketch reads the first four bytes as a little-endian number; then Murmur 3's finalizer of 32 bits."""
    value = U32((rotate(value, 8) & U32(0x00FF00FF)) | (rotate(value, 24) & U32(0xFF00FF00)))
    value = U32(value ^ (value >> U32(16)))
    value = U32(value * U32(0x85EBCA6B))
    value = U32(value ^ (value >> U32(13)))
    value = U32(value * U32(0xC2B2AE35))
    return U32(value ^ (value >> U32(16)))


@compiled
def lower_minima(hashes: Any, count: int, a_P: Any, b_P: Any, signature_P: Any) -> None:
    """By hashes[:count], four at a time. Up to three behind them are written over with the last one."""
    if count == 0:
        return
    for at in range(count, (count + 3) // 4 * 4):
        hashes[UP(at)] = hashes[UP(count - 1)]
    for at in range(0, count, 4):
        first, second = hashes[UP(at)], hashes[UP(at + 1)]
        third, fourth = hashes[UP(at + 2)], hashes[UP(at + 3)]
        for permutation in range(len(a_P)):
            p = UP(permutation)
            a, b = a_P[p], b_P[p]
            one = min(U32(a * first + b), U32(a * second + b))
            other = min(U32(a * third + b), U32(a * fourth + b))
            signature_P[p] = min(signature_P[p], min(one, other))


@compiled
def read_character(text: Any, at: int) -> Any:
    """The code point at a place of valid UTF-8, and its bytes."""
    place = UP(at)
    first = int(text[place])
    if first < 0x80:
        return first, 1
    second = int(text[place + UP(1)]) & 0x3F
    if first < 0xE0:
        return ((first & 0x1F) << 6) | second, 2
    third = int(text[place + UP(2)]) & 0x3F
    if first < 0xF0:
        return ((first & 0x0F) << 12) | (second << 6) | third, 3
    fourth = int(text[place + UP(3)]) & 0x3F
    return ((first & 0x07) << 18) | (second << 12) | (third << 6) | fourth, 4


@compiled
def write_character(character: int, text: Any, at: int) -> int:
    """The place after it."""
    place = UP(at)
    if character < 0x80:
        text[place] = character
        return at + 1
    last = 0x80 | (character & 0x3F)
    if character < 0x800:
        text[place] = 0xC0 | (character >> 6)
        text[place + UP(1)] = last
        return at + 2
    middle = 0x80 | ((character >> 6) & 0x3F)
    if character < 0x10000:
        text[place] = 0xE0 | (character >> 12)
        text[place + UP(1)] = middle
        text[place + UP(2)] = last
        return at + 3
    text[place] = 0xF0 | (character >> 18)
    text[place + UP(1)] = 0x80 | ((character >> 12) & 0x3F)
    text[place + UP(2)] = middle
    text[place + UP(3)] = last
    return at + 4


@compiled
def apply_queue(
    text: Any,
    starts: Any,
    sizes: Any,
    count: int,
    work: Any,
    hashes: Any,
    a_P: Any,
    b_P: Any,
    signature_P: Any,
) -> None:
    """Lower the minima by `count` shingles."""
    if count and blocks_of(sizes[UP(0)]) == 1:  # and so is each of this queue
        for begin in range(0, count, LANES):
            hash_blocks(text, starts, sizes, begin, hashes)
        lower_minima(hashes, count, a_P, b_P, signature_P)
        return
    for begin in range(0, count, LANES):
        hash_lanes(text, starts[begin:], sizes[begin:], min(LANES, count - begin), work, hashes, begin)
    lower_minima(hashes, count, a_P, b_P, signature_P)


@compiled
def sign_text(
    text: Any, begin: int, end: int, kinds: Any, lower: Any, letters: Any, plain: Any,
    word_weight: int, unspaced_weight: int, target: int, ring: Any, queues: Any, work: Any, hashes: Any,
    a_P: Any, b_P: Any, signature_P: Any,
) -> int:  # fmt: skip
    """Lower the minima of signature_P by the shingles of text[begin:end]; how many shingles there were.

    The text is written to `plain` as `shingles.py` has it, and a shingle is a part of that. `ring` holds where the
    last tokens begin, and their weights; `queues` starts and sizes of shingles, by their blocks.
    """
    queued = np.zeros(QUEUES, np.int64)
    oldest = newest = weight = shingles = written = 0
    open_token = False  # a token is being written
    last_word = False  # the token written last is a word
    at = begin
    while at <= end:
        if open_token and last_word:
            while at < end:
                letter = letters[UP(text[UP(at)])]
                if letter == 0:
                    break
                plain[UP(written)] = letter
                at += 1
                written += 1
        kind = SEPARATOR
        character = size = 0
        if at < end:
            character, size = read_character(text, at)
            kind = int(kinds[UP(character)])
        at += max(size, 1)
        if kind == MARK and open_token:
            written = write_character(character, plain, written)
            continue
        if kind == WORD and open_token and last_word:
            written = write_character(lower[UP(character)], plain, written)
            continue
        if open_token:  # it ends here
            open_token = False
            weight += word_weight if last_word else unspaced_weight
            while weight >= target:
                start, first_weight = ring[0, UP(oldest & (WINDOW - 1))], ring[1, UP(oldest & (WINDOW - 1))]
                weight -= first_weight
                oldest += 1
                shingles += 1
                queue = UP(min(blocks_of(written - start), QUEUES) - 1)
                place = UP(queued[queue])
                queues[0, queue, place] = start
                queues[1, queue, place] = written - start
                queued[queue] += 1
                if queued[queue] == QUEUED:
                    apply_queue(
                        plain, queues[0, queue], queues[1, queue], QUEUED, work, hashes, a_P, b_P, signature_P
                    )
                    queued[queue] = 0
        if kind in (WORD, UNSPACED):
            is_word = kind == WORD
            if newest and is_word and last_word:
                plain[UP(written)] = 32
                written += 1
            ring[0, UP(newest & (WINDOW - 1))] = written
            ring[1, UP(newest & (WINDOW - 1))] = word_weight if is_word else unspaced_weight
            newest += 1
            written = write_character(lower[UP(character)], plain, written)
            open_token, last_word = True, is_word
    if newest and not shingles:  # shorter than a shingle: it is one as it is
        queues[0, 0, 0], queues[1, 0, 0], queued[0], shingles = 0, written, 1, 1
    for queue in range(QUEUES):
        apply_queue(
            plain, queues[0, queue], queues[1, queue], queued[queue], work, hashes, a_P, b_P, signature_P
        )
    return shingles


@compiled
def find_composable(text: Any, ends_n: Any, found_n: Any) -> None:
    """Which texts have a mark that may join the letter before it: COMPOSABLE of characters.py, without a branch.

    It reads two bytes beyond the last text.
    """
    begin = 0
    for n in range(len(ends_n)):
        found = np.uint8(0)
        for at in range(begin, ends_n[n]):
            first, second, third = text[UP(at)], text[UP(at) + UP(1)], text[UP(at) + UP(2)]
            latin = (first == 0xCC) | (first == 0xCD)
            jamo = (first == 0xE1) & ((second & 0xFC) == 0x84)
            kana = (first == 0xE3) & (second == 0x82) & ((third == 0x99) | (third == 0x9A))
            found |= np.uint8(latin | jamo | kana)
        found_n[n] = found
        begin = ends_n[n]


@compiled
def sign_texts(
    text: Any, ends_n: Any, kinds: Any, lower: Any, word_weight: int, unspaced_weight: int, target: int,
    a_P: Any, b_P: Any, signatures_nP: Any, shingles_n: Any,
) -> None:  # fmt: skip
    """Signatures of the texts that end at ends_n in `text`, valid UTF-8."""
    letters = np.zeros(256, np.uint8)  # lower case of letters and digits of ASCII; 0: anything else
    for character in range(128):
        letters[character] = lower[character] if kinds[character] == WORD else 0
    longest = begin = 0
    for end in ends_n:
        longest, begin = max(longest, end - begin), end
    # lower case may need three bytes for two; a shingle is read up to 64 bytes beyond its start
    plain = np.zeros(longest + longest // 2 + 72, np.uint8)
    ring, queues = np.zeros((2, WINDOW), np.int64), np.zeros((2, QUEUES, QUEUED), np.int64)
    work, hashes = np.zeros(LONG, np.uint32), np.zeros(QUEUED + LANES, np.uint32)
    begin = 0
    for n in range(len(ends_n)):
        shingles_n[n] = sign_text(
            text, begin, ends_n[n], kinds, lower, letters, plain, word_weight, unspaced_weight, target,
            ring, queues, work, hashes, a_P, b_P, signatures_nP[n],
        )  # fmt: skip
        begin = ends_n[n]


@compiled
def band_keys(signatures_nP: Any, shingles_n: Any, rows: int, keys_bn: Any) -> None:
    """A number of 64 bits for each band of `rows` minima; 0 for a document without shingles."""
    for n in range(len(signatures_nP)):
        for band in range(len(keys_bn)):
            key = np.uint64(0x9E3779B97F4A7C15)
            for row in range(band * rows, band * rows + rows):
                key = (key ^ np.uint64(signatures_nP[n, row])) * np.uint64(0xFF51AFD7ED558CCD)
                key ^= key >> np.uint64(32)
            keys_bn[band, n] = max(key, np.uint64(1)) if shingles_n[n] else np.uint64(0)
