"""Texts as tokens, and their n-grams as numbers: compiled loops.

A token is a word, a number, or a character of a script without spaces. Not tokens: punctuation, Markdown, HTML
tags, addresses of links, LaTeX commands but for Greek letters and functions. `1,000` is one number, and so is
`1{,}000`.

An n-gram begins at each token and ends where its weight reaches a target. Words weigh the same; single letters and
digits half of that, for a formula or a table has many. It means something if it has two words.

Compiled functions that call each other are in this file: numba's cache does not notice a change in another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from foresail.curate.decontaminate.folding import (
    DIGIT,
    IDEOGRAPH,
    KIND,
    LETTER,
    NOTHING,
    SEPARATOR,
    SEVERAL,
    SYLLABLE,
    UPPER,
)

compiled: Any = njit(cache=True, nogil=True)

U64: Any = np.uint64
BEGIN, PRIME = U64(0xCBF29CE484222325), U64(0x100000001B3)
MIX, STEP, HIGH = U64(0xFF51AFD7ED558CCD), U64(29), U64(32)
BASE = U64(0x9E3779B97F4A7C15)  # of the polynomial that is the number of several tokens
ONE, NONE = U64(1), U64(0)
BEGIN_COMMAND, END_COMMAND = U64(0x9A848D5E6672B3DE), U64(0xC2F00318F053500A)  # hash_letters of them
NAME, PRONOUN, NUMBER = U64(0xA11CE), U64(0xBEEF5), U64(0xC0FFE)
MOST_TOKENS = 1024  # of an n-gram
FEWEST_DIFFERENT, FEWEST_WORDS = 4, 2  # tokens of an n-gram that means something
LINE_BREAK, SPACE, RETURN, COMMA, HYPHEN, BACKSLASH = 0x0A, 0x20, 0x0D, 0x2C, 0x2D, 0x5C
LESS, MORE, AND, SEMICOLON, SLASH, OPEN, CLOSE = 0x3C, 0x3E, 0x26, 0x3B, 0x2F, 0x7B, 0x7D
BRACKET_END, ROUND, ROUND_END, SMALL_N, SMALL_R, SMALL_T = 0x5D, 0x28, 0x29, 0x6E, 0x72, 0x74
LONGEST_TAG, LONGEST_ENTITY, LONGEST_LINK, LONGEST_NAME = 200, 9, 400, 20
# what a token's row of `places` holds
START, STOP = 0, 1
SINGLE, COMMAND = 16, 32  # traits: a single letter; behind a backslash
# what a row of `weights` holds
WORD_WEIGHT, HALF_WEIGHT, IDEOGRAPH_WEIGHT, SYLLABLE_WEIGHT = range(4)


@compiled
def mixed(number: Any) -> Any:
    number = (number ^ (number >> HIGH)) * MIX
    number = (number ^ (number >> STEP)) * PRIME
    return number ^ (number >> HIGH)


@compiled
def slot_of(key: Any, keys: Any) -> Any:
    """Where a key lies in a hash table, or may lie; 0 marks a free slot."""
    mask = U64(len(keys) - 1)
    slot = (key >> STEP) & mask
    while keys[slot] != NONE and keys[slot] != key:
        slot = (slot + ONE) & mask
    return slot


@compiled
def hash_letters(letters: Any) -> Any:
    """Of a word's folded letters; `mixed` makes the number of a token of it."""
    number = BEGIN
    for letter in letters:
        number = (number ^ U64(letter)) * PRIME
    return number


@compiled
def is_letter_at(codes: Any, at: int, kinds: Any) -> bool:
    return at < len(codes) and (kinds[codes[at]] & KIND) == LETTER


@compiled
def is_digit_at(codes: Any, at: int, kinds: Any) -> bool:
    return at < len(codes) and (kinds[codes[at]] & KIND) == DIGIT


@compiled
def line_break_within(codes: Any, at: int, kinds: Any) -> int:
    """ "tempera-\n  ture": from the hyphen on, the signs up to where the word goes on; 0: it does not."""
    place, breaks = at + 1, 0
    while place < len(codes) and place < at + 40 and codes[place] in (SPACE, LINE_BREAK, RETURN):
        breaks += codes[place] == LINE_BREAK
        place += 1
    small = is_letter_at(codes, place, kinds) and not (kinds[codes[place]] & UPPER)
    return place - at if breaks == 1 and small else 0


@compiled
def group_sign(codes: Any, at: int, kinds: Any) -> int:
    """Signs between groups of three digits: 1 of "1,000", 3 of "1{,}000", 2 of "1\\,000"; 0: there are none."""
    size = 0
    code = codes[at]
    if code in (COMMA, 0xA0, 0x2009, 0x202F):
        size = 1
    elif at + 2 < len(codes):
        if code == OPEN and codes[at + 1] == COMMA and codes[at + 2] == CLOSE:
            size = 3
        elif code == BACKSLASH and codes[at + 1] == COMMA:
            size = 2
    if size == 0:
        return 0
    for digit in range(3):
        if not is_digit_at(codes, at + size + digit, kinds):
            return 0
    return 0 if is_digit_at(codes, at + size + 3, kinds) else size


@compiled
def passed_over(codes: Any, at: int, kinds: Any) -> int:
    """Where reading goes on behind a tag, an entity or the address of a link that begins here; else `at`."""
    code, size = codes[at], len(codes)
    if at + 2 >= size:
        return at
    after = codes[at + 1]
    if code == LESS and (after == SLASH or is_letter_at(codes, at + 1, kinds)):
        for place in range(at + 1, min(size, at + LONGEST_TAG)):
            if codes[place] == MORE:
                return place + 1
            if codes[place] == LESS or codes[place] == LINE_BREAK:
                return at
    elif code == AND and (after == 0x23 or is_letter_at(codes, at + 1, kinds)):
        for place in range(at + 2, min(size, at + LONGEST_ENTITY)):
            if codes[place] == SEMICOLON:
                return place + 1
            if not (is_letter_at(codes, place, kinds) or is_digit_at(codes, place, kinds)):
                return at
    elif code == BRACKET_END and after == ROUND:
        for place in range(at + 2, min(size, at + LONGEST_LINK)):
            if codes[place] == ROUND_END:
                return place + 1
            if codes[place] <= SPACE:
                return at
    return at


@compiled
def environment_end(codes: Any, at: int) -> int:
    """Behind "{align*}" if it begins here."""
    if at < len(codes) and codes[at] == OPEN:
        for place in range(at + 1, min(len(codes), at + LONGEST_NAME)):
            if codes[place] == CLOSE:
                return place + 1
    return at


@compiled
def read_tokens(
    codes: Any, kinds: Any, letters: Any, several: Any, hashes: Any, traits: Any, places: Any
) -> int:
    """Writes a hash, traits and a place for each token; how many there are. The last code point is a line break.

    A trait is the token's kind, with UPPER, SINGLE and COMMAND.
    """
    count, at, end, command = 0, 0, len(codes) - 1, 0
    while at < end:
        code = codes[at]
        own = kinds[code] & KIND
        if own == SEVERAL:
            own = several[letters[code], 0]
        if own == LETTER:
            start, stop, hash, length = at, at, BEGIN, 0
            upper = kinds[code] & UPPER
            own = kinds[code] & KIND
            while True:
                if own == LETTER:
                    hash = (hash ^ U64(letters[code])) * PRIME
                    length += 1
                    stop = at + 1
                elif own == SEVERAL and several[letters[code], 0] == LETTER:
                    for part in range(1, several.shape[1]):
                        letter = several[letters[code], part]
                        if letter == 0:
                            break
                        hash = (hash ^ U64(letter)) * PRIME
                        length += 1
                    stop = at + 1
                elif own != NOTHING:
                    size = line_break_within(codes, at, kinds) if code in (HYPHEN, 0x2010, 0x2011) else 0
                    if size == 0:
                        break
                    at += size - 1
                at += 1
                code = codes[at]
                own = kinds[code] & KIND
            hashes[count] = mixed(hash)
            traits[count] = LETTER | upper | command | (SINGLE if length == 1 else 0)
            places[count, START], places[count, STOP] = start, stop
            if command and hash in (BEGIN_COMMAND, END_COMMAND):
                at = environment_end(codes, at)
            count += 1
            command = 0
        elif own == DIGIT:
            start, stop, hash, length = at, at, BEGIN, 0
            own = kinds[code] & KIND
            while True:
                if own == DIGIT:
                    hash = (hash ^ U64(letters[code])) * PRIME
                    length += 1
                    stop = at + 1
                elif own != NOTHING:
                    size = group_sign(codes, at, kinds)
                    if size == 0:
                        break
                    at += size - 1
                at += 1
                code = codes[at]
                own = kinds[code] & KIND
            hashes[count], traits[count] = mixed(hash), DIGIT | (SINGLE if length == 1 else 0)
            places[count, START], places[count, STOP] = start, stop
            count += 1
            command = 0
        elif own == IDEOGRAPH or own == SYLLABLE:  # noqa: SIM109
            hashes[count], traits[count] = mixed(U64(letters[code])), own
            places[count, START], places[count, STOP] = at, at + 1
            count += 1
            at += 1
            command = 0
        elif own == SEVERAL:
            count = read_parts(several[letters[code]], kinds, at, count, hashes, traits, places)
            at += 1
            command = 0
        elif own == NOTHING:
            at += 1
        else:
            command = 0
            code = letters[code]  # of a sign of full width, the usual one
            if code == BACKSLASH and is_letter_at(codes, at + 1, kinds):
                # "\\nThe": a line break of JSON, and no command
                escape = codes[at + 1] in (SMALL_N, SMALL_R, SMALL_T) and (
                    not is_letter_at(codes, at + 2, kinds) or (kinds[codes[at + 2]] & UPPER) != 0
                )
                at += 2 if escape else 1
                command = 0 if escape else COMMAND
            elif code in (LESS, AND, BRACKET_END):
                at = max(at + 1, passed_over(codes, at, kinds))
            else:
                at += 1
    return count


@compiled
def read_parts(parts: Any, kinds: Any, at: int, count: int, hashes: Any, traits: Any, places: Any) -> int:
    """The tokens of one code point that is several letters and signs: "1 2" of ½."""
    before, hash = SEPARATOR, BEGIN
    for part in range(1, len(parts)):
        letter = parts[part]
        if letter == 0:
            break
        own = kinds[letter] & KIND
        if own != SEPARATOR:
            new = own != before or own in (IDEOGRAPH, SYLLABLE)
            count += new
            hash = ((BEGIN if new else hash) ^ U64(letter)) * PRIME
            if own in (IDEOGRAPH, SYLLABLE):
                hashes[count - 1] = mixed(U64(letter))
            else:
                hashes[count - 1] = mixed(hash)
            traits[count - 1] = own
            places[count - 1, START], places[count - 1, STOP] = at, at + 1
        before = own
    return count


@compiled
def weigh_tokens(
    count: int, hashes: Any, traits: Any, places: Any, weights: Any, masked: bool, numbers: bool,
    commands: Any, meanings: Any, pronouns: Any, weights_t: Any,
) -> int:  # fmt: skip
    """Gives each token its weight; how many are left without LaTeX commands that mean nothing.

    `masked`: names in a row become one token, pronouns become one, and with `numbers` numbers do.
    """
    left = 0
    for token in range(count):
        number, trait = hashes[token], traits[token]
        kind = trait & KIND
        if kind == IDEOGRAPH or kind == SYLLABLE:  # noqa: SIM109
            weight = weights[IDEOGRAPH_WEIGHT] if kind == IDEOGRAPH else weights[SYLLABLE_WEIGHT]
        else:
            half = (trait & SINGLE) != 0
            if trait & COMMAND:
                slot = slot_of(number, commands)
                if commands[slot] == NONE:
                    continue
                half = half or meanings[slot] != number
                number = meanings[slot]
            if masked:
                if kind == DIGIT:
                    number = NUMBER if numbers else number
                    half = half or numbers
                elif trait & UPPER:
                    number, half = NAME, True
                    if left and hashes[left - 1] == NAME:
                        places[left - 1, STOP] = places[token, STOP]
                        continue
                elif pronouns[slot_of(number, pronouns)] == number:
                    number, half = PRONOUN, True
            weight = weights[HALF_WEIGHT] if half else weights[WORD_WEIGHT]
        hashes[left], traits[left], weights_t[left] = number, trait & (KIND | SINGLE), weight
        places[left, START], places[left, STOP] = places[token, START], places[token, STOP]
        left += 1
    return left


@compiled
def gram_ends(weights_t: Any, count: int, target: int, ends: Any) -> int:
    """Where the n-gram ends that begins at each token; how many there are."""
    end, weight = 0, 0
    for start in range(count):
        while weight < target and end < count:
            weight += weights_t[end]
            end += 1
        if weight < target:
            return start
        ends[start] = end
        weight -= weights_t[start]
    return count


@compiled
def gram_key(hashes: Any, start: int, end: int) -> Any:
    number = NONE
    for place in range(start, end):
        number = number * BASE + hashes[place]
    return mixed(number) | ONE


@compiled
def powers_of_base(powers: Any) -> None:
    powers[0] = ONE
    for place in range(1, len(powers)):
        powers[place] = powers[place - 1] * BASE


@compiled
def means_something(hashes: Any, traits: Any, start: int, end: int) -> bool:
    """Neither a row of a table nor "0 0 0 0"."""
    found = words = 0
    for place in range(start, end):
        words += (traits[place] & KIND) != DIGIT and traits[place] != (LETTER | SINGLE)
        new = True
        for before in range(start, place):
            if hashes[before] == hashes[place]:
                new = False
                break
        found += new
        if found >= FEWEST_DIFFERENT and words >= FEWEST_WORDS:
            return True
    return False


@compiled
def list_grams(
    hashes: Any, traits: Any, weights_t: Any, count: int, target: int, ends: Any, keys: Any
) -> int:
    """The keys of all n-grams that mean something; how many there are."""
    grams, found = gram_ends(weights_t, count, target, ends), 0
    for start in range(grams):
        if means_something(hashes, traits, start, ends[start]):
            keys[found] = gram_key(hashes, start, ends[start])
            found += 1
    return found


@compiled
def fill_table(gram_keys: Any, keys: Any, numbers: Any, filter: Any) -> None:
    """Key number n at its place in a hash table, and a bit for it in the filter that stands before the table."""
    shift = U64(64) - U64(bits_of(len(filter)) + 3)
    for n in range(len(gram_keys)):
        slot = slot_of(gram_keys[n], keys)
        keys[slot], numbers[slot] = gram_keys[n], n
        bit = gram_keys[n] >> shift
        filter[bit >> U64(3)] |= np.uint8(1 << int(bit & U64(7)))


@compiled
def bits_of(size: int) -> int:
    """bits_of(1024) -> 10."""
    bits = 0
    while (1 << bits) < size:
        bits += 1
    return bits


@compiled
def find_grams(
    hashes: Any, weights_t: Any, count: int, target: int, powers: Any, keys: Any, numbers: Any, filter: Any,
    found: Any,
) -> int:  # fmt: skip
    """Rows of `found`: number of an indexed n-gram, its first token, the one behind it. How many there are."""
    shift = U64(64) - U64(bits_of(len(filter)) + 3)
    end, weight, hits, number = 0, 0, 0, NONE
    for start in range(count):
        while weight < target and end < count:
            weight += weights_t[end]
            number = number * BASE + hashes[end]
            end += 1
        if weight < target:
            break
        key = mixed(number) | ONE
        bit = key >> shift
        if filter[bit >> U64(3)] & np.uint8(1 << int(bit & U64(7))):
            slot = slot_of(key, keys)
            if keys[slot] == key:
                found[hits, 0], found[hits, 1], found[hits, 2] = numbers[slot], start, end
                hits += 1
                if hits == len(found):
                    break
        weight -= weights_t[start]
        number -= hashes[start] * powers[end - start - 1]
    return hits


@compiled
def find_rows(
    hashes: Any, weights_t: Any, count: int, target: int, powers: Any, keys: Any, numbers: Any, filter: Any,
    first_row: Any, row_sizes: Any, row_keys: Any, begun: Any, found: Any,
) -> int:  # fmt: skip
    """As find_grams, of whole short rows: those that begin with n-gram number g are first_row[g] up to the next."""
    hits = 0
    for place in range(find_grams(hashes, weights_t, count, target, powers, keys, numbers, filter, begun)):
        gram, start = begun[place, 0], begun[place, 1]
        for row in range(first_row[gram], first_row[gram + 1]):
            end = start + row_sizes[row]
            if end <= count and gram_key(hashes, start, end) == row_keys[row] and hits < len(found):
                found[hits, 0], found[hits, 1], found[hits, 2] = row, start, end
                hits += 1
    return hits
