"""MinHash signatures of texts: words, shingles, SHA-1 and permutations in one compiled pass.

Equal bit for bit to datasketch 2 with its defaults, update_batch(shingles(text)): the first four bytes of SHA-1,
mixed once by Murmur's finalizer, then for each permutation the minimum of a·h + b modulo 2³².

All functions that call each other are in this file: numba's cache does not notice a change in another one.
SHA-1 runs on LANES shingles at once, in vector registers. Shapes: n documents, P permutations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from foresail.curate.deduplicate.characters import MARK, SEPARATOR, UNSPACED, WORD

LANES = 16
QUEUES = 3  # shingles of one block of 64 bytes, of two, of more
WINDOW = 128  # tokens of a shingle at most: a ring of so many is kept
AT_ONCE = 4096  # hashes between two applications of the permutations

# one array for message and state: the compiler sees that they do not overlap
MESSAGE, STATE = 0, 80 * LANES
LONG = STATE + 85 * LANES

U32, UP = np.uint32, np.uintp
FIRST = UP(STATE + 4 * LANES)
ROW, ROW_2, ROW_3, ROW_4 = UP(LANES), UP(2 * LANES), UP(3 * LANES), UP(4 * LANES)
ROW_8, ROW_14, ROW_16 = UP(8 * LANES), UP(14 * LANES), UP(16 * LANES)
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
def compress(work: Any) -> None:
    """80 rounds on the messages in `work`; row t + 5 of the state is the `a` of round t, rows 0 to 4 go in.

    One flat loop for rounds and lanes, and unsigned places: so LLVM makes vectors of it.
    """
    for place in range(16 * LANES, 80 * LANES):
        m = UP(place)
        work[m] = rotate(U32(work[m - ROW_3] ^ work[m - ROW_8] ^ work[m - ROW_14] ^ work[m - ROW_16]), 1)
    for place in range(20 * LANES):
        m, at = UP(place), UP(place) + FIRST
        b, c, d = work[at - ROW], rotate(work[at - ROW_2], 30), rotate(work[at - ROW_3], 30)
        mixed = U32(d ^ (b & (c ^ d))) + U32(0x5A827999)
        work[at + ROW] = U32(rotate(work[at], 5) + mixed + rotate(work[at - ROW_4], 30) + work[m])
    for place in range(20 * LANES, 40 * LANES):
        m, at = UP(place), UP(place) + FIRST
        b, c, d = work[at - ROW], rotate(work[at - ROW_2], 30), rotate(work[at - ROW_3], 30)
        mixed = U32(b ^ c ^ d) + U32(0x6ED9EBA1)
        work[at + ROW] = U32(rotate(work[at], 5) + mixed + rotate(work[at - ROW_4], 30) + work[m])
    for place in range(40 * LANES, 60 * LANES):
        m, at = UP(place), UP(place) + FIRST
        b, c, d = work[at - ROW], rotate(work[at - ROW_2], 30), rotate(work[at - ROW_3], 30)
        mixed = U32((b & c) | (d & (b | c))) + U32(0x8F1BBCDC)
        work[at + ROW] = U32(rotate(work[at], 5) + mixed + rotate(work[at - ROW_4], 30) + work[m])
    for place in range(60 * LANES, 80 * LANES):
        m, at = UP(place), UP(place) + FIRST
        b, c, d = work[at - ROW], rotate(work[at - ROW_2], 30), rotate(work[at - ROW_3], 30)
        mixed = U32(b ^ c ^ d) + U32(0xCA62C1D6)
        work[at + ROW] = U32(rotate(work[at], 5) + mixed + rotate(work[at - ROW_4], 30) + work[m])


@compiled
def blocks_of(size: int) -> int:
    return (size + 72) >> 6


@compiled
def hash_lanes(text: Any, starts: Any, sizes: Any, count: int, work: Any, hashes: Any, at: int) -> None:
    """Write the mixed hashes of `count` shingles, at most LANES, to hashes[at:]."""
    chain = np.empty(5 * LANES, np.uint32)  # h0 to h4
    for lane in range(LANES):
        chain[lane] = U32(0x67452301)
        chain[LANES + lane] = U32(0xEFCDAB89)
        chain[2 * LANES + lane] = U32(0x98BADCFE)
        chain[3 * LANES + lane] = U32(0x10325476)
        chain[4 * LANES + lane] = U32(0xC3D2E1F0)
    longest = 0
    for lane in range(count):
        longest = max(longest, blocks_of(sizes[lane]))
    for block in range(longest):
        work[: 16 * LANES] = U32(0)
        for lane in range(count):
            if block < blocks_of(sizes[lane]):
                load_block(text, starts[lane], sizes[lane], block, lane, work)
        for lane in range(LANES):  # rows: e, d, c before their rotation, b, a
            work[STATE + lane] = rotate(chain[4 * LANES + lane], 2)
            work[STATE + LANES + lane] = rotate(chain[3 * LANES + lane], 2)
            work[STATE + 2 * LANES + lane] = rotate(chain[2 * LANES + lane], 2)
            work[STATE + 3 * LANES + lane] = chain[LANES + lane]
            work[STATE + 4 * LANES + lane] = chain[lane]
        compress(work)
        for lane in range(count):
            if block < blocks_of(sizes[lane]):
                end = STATE + 84 * LANES + lane
                chain[lane] += work[end]
                chain[LANES + lane] += work[end - LANES]
                chain[2 * LANES + lane] += rotate(work[end - 2 * LANES], 30)
                chain[3 * LANES + lane] += rotate(work[end - 3 * LANES], 30)
                chain[4 * LANES + lane] += rotate(work[end - 4 * LANES], 30)
    for lane in range(count):
        hashes[at + lane] = finalize(swap_bytes(chain[lane]))


@compiled
def swap_bytes(value: Any) -> Any:
    """datasketch reads the first four bytes as a little-endian number."""
    return U32(
        (value >> U32(24))
        | ((value >> U32(8)) & U32(0xFF00))
        | ((value << U32(8)) & U32(0xFF0000))
        | (value << U32(24))
    )


@compiled
def finalize(value: Any) -> Any:
    """Murmur 3's finalizer of 32 bits."""
    value = U32(value ^ (value >> U32(16)))
    value = U32(value * U32(0x85EBCA6B))
    value = U32(value ^ (value >> U32(13)))
    value = U32(value * U32(0xC2B2AE35))
    return U32(value ^ (value >> U32(16)))


@compiled
def lower_minima(hashes: Any, count: int, a_P: Any, b_P: Any, signature_P: Any) -> None:
    for permutation in range(len(a_P)):
        a, b = a_P[permutation], b_P[permutation]
        least = signature_P[permutation]
        for at in range(count):
            least = min(least, U32(a * hashes[at] + b))
        signature_P[permutation] = least


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
def sign_text(
    text: Any, begin: int, end: int, kinds: Any, lower: Any, plain: Any,
    word_weight: int, unspaced_weight: int, target: int,
    a_P: Any, b_P: Any, signature_P: Any, work: Any, hashes: Any,
) -> int:  # fmt: skip
    """Lower the minima of signature_P by the shingles of text[begin:end]; how many shingles there were."""
    ring_start, ring_weight = np.empty(WINDOW, np.int64), np.empty(WINDOW, np.int64)
    queue_start = np.empty((QUEUES, LANES), np.int64)
    queue_size = np.empty((QUEUES, LANES), np.int64)
    queued = np.zeros(QUEUES, np.int64)
    oldest = newest = weight = shingles = pending = written = 0
    open_token = False  # a token is being written
    last_word = False  # the token written last is a word
    at = begin
    while at <= end:
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
            weight += ring_weight[(newest - 1) % WINDOW]
            while weight >= target:
                start = ring_start[oldest % WINDOW]
                length = written - start
                weight -= ring_weight[oldest % WINDOW]
                oldest += 1
                shingles += 1
                queue = min(blocks_of(length), QUEUES) - 1
                queue_start[queue, queued[queue]] = start
                queue_size[queue, queued[queue]] = length
                queued[queue] += 1
                if queued[queue] == LANES:
                    hash_lanes(plain, queue_start[queue], queue_size[queue], LANES, work, hashes, pending)
                    queued[queue] = 0
                    pending += LANES
                    if pending > AT_ONCE - LANES * (QUEUES + 1):
                        lower_minima(hashes, pending, a_P, b_P, signature_P)
                        pending = 0
        if kind in (WORD, UNSPACED):
            is_word = kind == WORD
            if newest and is_word and last_word:
                plain[written] = 32
                written += 1
            ring_start[newest % WINDOW] = written
            ring_weight[newest % WINDOW] = word_weight if is_word else unspaced_weight
            newest += 1
            written = write_character(lower[UP(character)], plain, written)
            open_token, last_word = True, is_word
    if newest and not shingles:  # shorter than a shingle: it is one as it is
        queue_start[0, 0], queue_size[0, 0], queued[0], shingles = 0, written, 1, 1
    for queue in range(QUEUES):
        if queued[queue]:
            hash_lanes(plain, queue_start[queue], queue_size[queue], queued[queue], work, hashes, pending)
            pending += queued[queue]
    lower_minima(hashes, pending, a_P, b_P, signature_P)
    return shingles


@compiled
def sign_texts(
    text: Any, ends_n: Any, kinds: Any, lower: Any, word_weight: int, unspaced_weight: int, target: int,
    a_P: Any, b_P: Any, signatures_nP: Any, shingles_n: Any,
) -> None:  # fmt: skip
    """Signatures of the texts that end at ends_n in `text`, valid UTF-8."""
    work = np.zeros(LONG, np.uint32)
    hashes = np.empty(AT_ONCE, np.uint32)
    longest = begin = 0
    for end in ends_n:
        longest, begin = max(longest, end - begin), end
    # lower case may need three bytes for two; a word is read up to 3 bytes beyond its end
    plain = np.zeros(longest + longest // 2 + 8, np.uint8)
    begin = 0
    for n in range(len(ends_n)):
        shingles_n[n] = sign_text(
            text, begin, ends_n[n], kinds, lower, plain, word_weight, unspaced_weight, target,
            a_P, b_P, signatures_nP[n], work, hashes,
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
