"""Columns of a line's row of numbers, kinds of lines, and marks of words: what the compiled loops share."""

from __future__ import annotations

# of a line: where it stands, and how many characters of what it has
START, STOP, CHARACTERS, INDENT, LETTERS, DIGITS, BROKENS, BRACKETS, OPERATORS, COMMANDS, DOLLARS, PIPES = (
    range(12)
)
BRACES, FIRST, FINAL, ENDED, ELLIPSIS, STRAY, MISREAD, SIGNS, KIND = range(12, 21)
COLUMNS = 21

PROSE, CODE, MATHS, TABLE, ITEM, HEADING, EMPTY = range(7)  # KIND of a line

# of a word
HAS_LETTER, IS_SYLLABLE, IS_IDEOGRAPH, BEGINS_UPPER, BEGINS_LOWER = 1, 2, 4, 8, 16
ENDS_SENTENCE, FIRST_OF_LINE, SHOUTS, MIXED, ENDS_IN_POINT, ENDS_IN_COMMA = 32, 64, 128, 256, 512, 1024
UNSPACED = IS_SYLLABLE | IS_IDEOGRAPH
