"""Texts as tokens: compiled loops.

A token is a word, a number, or a character of a script without spaces. Not tokens: punctuation, Markdown, HTML
tags, addresses of links, LaTeX commands but for Greek letters and functions. `1,000` is one number, and so is
`1{,}000`.
"""

from __future__ import annotations

from typing import Any

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
from foresail.curate.decontaminate.hashing import NONE, PRIME, U64, compiled, mixed, slot_of

HASHING_FILE = "6f421426"  # checksum of hashing.py: numba's cache notices a change in this file alone
BEGIN = U64(0xCBF29CE484222325)
BEGIN_COMMAND, END_COMMAND = U64(0x9A848D5E6672B3DE), U64(0xC2F00318F053500A)  # hash_letters of them
NAME, PRONOUN, NUMBER = U64(0xA11CE), U64(0xBEEF5), U64(0xC0FFE)
LINE_BREAK, SPACE, RETURN, COMMA, HYPHEN, BACKSLASH = 0x0A, 0x20, 0x0D, 0x2C, 0x2D, 0x5C
LESS, MORE, AND, SEMICOLON, SLASH, OPEN, CLOSE = 0x3C, 0x3E, 0x26, 0x3B, 0x2F, 0x7B, 0x7D
BRACKET_END, ROUND, ROUND_END, SMALL_N, SMALL_R, SMALL_T = 0x5D, 0x28, 0x29, 0x6E, 0x72, 0x74
MARGIN_SIGNS = (MORE, 0x7C, 0x23, 0x2A, SLASH)  # > | # * / before a line of a quotation or a comment
LINE_SIGNS = (SPACE, LINE_BREAK, RETURN, *MARGIN_SIGNS)
LONGEST_TAG, LONGEST_ENTITY, LONGEST_LINK, LONGEST_NAME = 200, 9, 400, 20
# what a token's row of `places` holds
START, STOP = 0, 1
SINGLE, COMMAND = 16, 32  # traits: a single letter; behind a backslash
# what a row of `weights` holds
WORD_WEIGHT, HALF_WEIGHT, IDEOGRAPH_WEIGHT, SYLLABLE_WEIGHT = range(4)


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
    """ "tempera-\n> ture": from the hyphen on, the signs up to where the word goes on; 0: it does not."""
    place, breaks = at + 1, 0
    while place < len(codes) and place < at + 40 and codes[place] in LINE_SIGNS:
        if codes[place] in MARGIN_SIGNS and breaks == 0:
            break
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
