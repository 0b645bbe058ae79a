"""Passes over a page's characters, compiled: words of texts, words of attributes, where blocks begin and end.

The characters are one array of code points; node i's are chars[starts[i]:starts[i + 1]]. A word is known by its
hash: hash_words("Two words, 12") -> the hashes of "two", "words", "0" (digits are all one word)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

FNV, PRIME = np.uint32(2166136261), np.uint32(16777619)
# columns of `counts`
CHARS, WORDS, DIGITS, UPPER, STOPS, COMMAS, SYMBOLS, CAPITALIZED, LINK_WORDS, LINK_CHARS, TEXTS, LINKS = (
    range(12)
)
MONEY, WIDE, STRONG_WORDS, NUMBERS, LONG_WORDS = range(12, 17)
COUNTS = 17
HEAD_WORDS = 40  # of a block, whose hashes are taken
# bits of an element
HIDDEN, ROLE_NAVIGATION, ROLE_MAIN, ROLE_OTHER, MICRODATA, LABELLED = 1, 2, 4, 8, 16, 32


@njit(cache=True)
def is_word(char: int) -> bool:
    if char < 128:
        return 97 <= char <= 122 or 65 <= char <= 90 or 48 <= char <= 57 or char == 95
    if char < 0xC0:
        return char == 0xAA or char == 0xB5 or char == 0xBA
    if 0x2000 <= char <= 0x2BFF or 0x3000 <= char <= 0x3004 or 0x3008 <= char <= 0x3020:
        return False
    return not (
        0xFF00 <= char <= 0xFF0F
        or 0xFF1A <= char <= 0xFF20
        or char == 0xD7
        or char == 0xF7
        or char >= 0x1F000
    )


@njit(cache=True)
def is_wide(char: int) -> bool:
    """Scripts without spaces: there a character counts as half a word."""
    return 0x3040 <= char <= 0x30FF or 0x3400 <= char <= 0x9FFF or 0x0E00 <= char <= 0x0EFF


@njit(cache=True)
def cut_blocks(kinds: Array, parents: Array, ends: Array, is_blank: Array) -> tuple[Array, Array, Array]:
    """For every node: its block's number or -1 for what is not shown, the element that holds the block, its link.

    kinds: 0 inline, 1 block, 2 not shown, 3 text, 4 link, 5 block whose inside is one block (pre)
    """
    size = len(kinds)
    block_of = np.full(size, -1, np.int32)
    holder = np.full(size, -1, np.int32)
    link = np.full(size, -1, np.int32)
    solid = np.zeros(size, np.bool_)
    block, current, broken = -1, -1, True
    node = 0
    while node < size:
        kind, parent = kinds[node], parents[node]
        if kind == 2:
            node = ends[node]
            continue
        if parent >= 0:
            holder[node], link[node], solid[node] = holder[parent], link[parent], solid[parent]
        if kind == 3:
            if not is_blank[node]:
                if broken or holder[node] != current:
                    block += 1
                    current, broken = holder[node], False
                block_of[node] = block
        elif (kind == 1 or kind == 5) and not solid[node]:
            holder[node] = node
            broken = True
            solid[node] = kind == 5
        elif kind == 4:
            link[node] = node
        node += 1
    return block_of, holder, link


@njit(cache=True)
def scan_texts(
    chars: Array, starts: Array, block_of: Array, link: Array, strong: Array, blocks: int
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Counts of every block; hashes of its first words, with the place of each block's first; characters."""
    counts = np.zeros((blocks, COUNTS), np.float32)
    words = np.zeros(blocks * 4 + 1000, np.uint32)
    first_word = np.zeros(blocks + 1, np.int32)
    last_char = np.zeros(blocks, np.int32)
    first_char = np.zeros(blocks, np.int32)
    digest = np.full(blocks, FNV, np.uint32)
    word_total, block, taken, last_link = 0, -1, 0, -1
    for node in range(len(block_of)):
        if block_of[node] < 0:
            continue
        if block_of[node] != block:
            block, taken, last_link = block_of[node], 0, -1
            first_word[block] = word_total
        row = counts[block]
        in_link, in_strong = link[node] >= 0, strong[node]
        row[TEXTS] += 1
        if in_link and link[node] != last_link:
            row[LINKS] += 1
            last_link = link[node]
        stop = starts[node + 1]
        at = starts[node]
        while at < stop:
            char = chars[at]
            if not is_word(char):
                at += 1
                if char <= 32 or char == 0xA0 or char == 0x3000 or 0x2000 <= char <= 0x200F:
                    continue
                row[CHARS] += 1
                row[LINK_CHARS] += in_link
                last_char[block] = char
                if first_char[block] == 0:
                    first_char[block] = char
                if char == 46 or char == 33 or char == 63 or char == 0x3002:
                    row[STOPS] += 1
                elif char == 44 or char == 0x3001 or char == 0xFF0C or char == 59:
                    row[COMMAS] += 1
                elif char == 36 or char == 0x20AC or char == 0xA3 or char == 0xA5 or char == 0x20B9:
                    row[MONEY] += 1
                else:
                    row[SYMBOLS] += 1
                continue
            begin, value, digits, wide = at, FNV, 0, 0
            while at < stop and is_word(chars[at]):
                char = chars[at]
                if 65 <= char <= 90:
                    char += 32
                    row[UPPER] += 1
                elif 48 <= char <= 57:
                    digits += 1
                    char = 48
                elif is_wide(char):
                    wide += 1
                value = np.uint32((value ^ np.uint32(char)) * PRIME)
                at += 1
            length = at - begin
            last_char[block] = chars[at - 1]
            if first_char[block] == 0:
                first_char[block] = chars[begin]
            number = 1.0 + wide // 2
            row[CHARS] += length
            row[WIDE] += wide
            row[DIGITS] += digits
            row[WORDS] += number
            row[LONG_WORDS] += length > 6
            if in_link:
                row[LINK_WORDS] += number
                row[LINK_CHARS] += length
            if in_strong:
                row[STRONG_WORDS] += number
            if digits == length:
                row[NUMBERS] += 1
                value = FNV
            if 65 <= chars[begin] <= 90:
                row[CAPITALIZED] += 1
            digest[block] = np.uint32((digest[block] ^ value) * PRIME)
            if taken < HEAD_WORDS:
                taken += 1
                if word_total == len(words):
                    longer = np.zeros(2 * len(words), np.uint32)
                    longer[:word_total] = words
                    words = longer
                words[word_total] = value
                word_total += 1
    # blocks come in order, and every block has a node
    first_word[blocks] = word_total
    return counts, words[:word_total], first_word, first_char, last_char, digest


@njit(cache=True)
def hash_words(chars: Array, limit: int) -> Array:
    out = np.zeros(limit, np.uint32)
    total, at = 0, 0
    while at < len(chars) and total < limit:
        if not is_word(chars[at]):
            at += 1
            continue
        value, digits, begin = FNV, 0, at
        while at < len(chars) and is_word(chars[at]):
            char = chars[at]
            if 65 <= char <= 90:
                char += 32
            elif 48 <= char <= 57:
                digits += 1
                char = 48
            value = np.uint32((value ^ np.uint32(char)) * PRIME)
            at += 1
        out[total] = FNV if digits == at - begin else value
        total += 1
    return out[:total]


@njit(cache=True)
def hash_range(chars: Array, begin: int, end: int) -> np.uint32:
    value = FNV
    for at in range(begin, end):
        char = chars[at]
        if 48 <= char <= 57:
            continue
        if 65 <= char <= 90:
            char += 32
        value = np.uint32((value ^ np.uint32(char)) * PRIME)
    return value


@njit(cache=True)
def scan_attributes(
    chars: Array, starts: Array, tags: Array, names: Array, values: Array
) -> tuple[Array, Array, Array, Array]:
    """Hashes of the words in class, id, role and itemprop, with the place of each node's first; a signature of tag
    and class; bits of what the element says.

    names: hashes of "class", "id", "role", "itemprop", "style", "hidden", "aria-hidden", "itemtype", "data-testid",
    "aria-label"; values: hashes of "true", "navigation", "main"
    """
    size = len(tags)
    tokens = np.zeros(size * 3 + 1000, np.uint32)
    first = np.zeros(size + 1, np.int32)
    signature = np.zeros(size, np.uint32)
    bits = np.zeros(size, np.uint8)
    total = 0
    for node in range(size):
        first[node] = total
        tag = tags[node]
        if tag < 0:
            continue
        base = np.uint32((FNV ^ np.uint32(tag)) * PRIME)
        sign = base
        if total + 64 > len(tokens):
            longer = np.zeros(2 * len(tokens) + 64, np.uint32)
            longer[:total] = tokens[:total]
            tokens = longer
        tokens[total] = base
        total += 1
        limit = total + 40
        at, stop = starts[node], starts[node + 1]
        while at < stop:
            if chars[at] == 32:
                at += 1
                continue
            begin = at
            while at < stop and chars[at] != 61 and chars[at] != 32:
                at += 1
            name = hash_range(chars, begin, at)
            if at >= stop or chars[at] != 61:
                if name == names[5]:
                    bits[node] |= HIDDEN
                continue
            at += 2
            begin = at
            while at < stop and chars[at] != 34:
                at += 1
            end = at
            at += 1
            which = -1
            for number in range(len(names)):
                if names[number] == name:
                    which = number
            if which < 0:
                continue
            if which == 5:
                bits[node] |= HIDDEN
            elif which == 6:
                if hash_range(chars, begin, end) == values[0]:
                    bits[node] |= HIDDEN
            elif which == 4:
                place = begin
                while place + 4 <= end:  # display:none
                    if (
                        chars[place] == 110
                        and chars[place + 1] == 111
                        and chars[place + 2] == 110
                        and chars[place + 3] == 101
                    ):
                        back = place - 1
                        while back > begin and (chars[back] == 32 or chars[back] == 58):
                            back -= 1
                        if (
                            back - begin >= 6
                            and chars[back] == 121
                            and chars[back - 1] == 97
                            and chars[back - 2] == 108
                        ):
                            bits[node] |= HIDDEN
                    place += 1
            else:
                if which == 0:
                    sign = np.uint32((sign ^ hash_range(chars, begin, end)) * PRIME)
                elif which == 2:
                    role = hash_range(chars, begin, end)
                    bits[node] |= (
                        ROLE_NAVIGATION
                        if role == values[1]
                        else (ROLE_MAIN if role == values[2] else ROLE_OTHER)
                    )
                elif which == 3 or which == 7:
                    bits[node] |= MICRODATA
                elif which == 9:
                    bits[node] |= LABELLED
                salt = FNV if which == 0 or which == 1 else np.uint32(FNV + which)
                place = begin
                while place < end and total < limit:
                    char = chars[place]
                    if not is_word(char) or char == 95 or 48 <= char <= 57:
                        place += 1
                        continue
                    value, start = salt, place
                    while place < end:
                        char = chars[place]
                        if not is_word(char) or char == 95 or 48 <= char <= 57:
                            break
                        if 65 <= char <= 90:
                            if place > start and 97 <= chars[place - 1] <= 122:
                                break
                            char += 32
                        value = np.uint32((value ^ np.uint32(char)) * PRIME)
                        place += 1
                    if place - start > 1:
                        tokens[total] = value
                        total += 1
        signature[node] = sign
    first[size] = total
    return tokens[:total], first, signature, bits
