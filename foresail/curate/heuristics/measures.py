"""The measures that limits may name, and what a reason says of their values."""

from __future__ import annotations

TOPS, REPEATS = (2, 3, 4), (5, 6, 7, 8, 9, 10)  # words in a sequence

MEASURES: dict[str, str] = {
    "words": "{} words",
    "word_length": "words of {} characters in the mean",
    "long_words": "{} of the characters are in words of more than 60",
    "signs": "{} signs # and … for a word",
    "letter_words": "{} of the words have letters",
    "letters": "{} of the characters are letters",
    "digits": "{} of the characters are digits",
    "broken": "{} of the characters are broken",
    "misread": "{} of the characters are bytes of others, read in the wrong encoding",
    "stray_marks": "{} of the letters are marks and vowels that cannot stand there",
    "mixed_words": "{} of the words mix alphabets",
    "capitals": "{} of the words are in capitals",
    "stop_words": "{} different stop words",
    "stop_word_share": "{} of the words are stop words",
    "odd_pairs": "{} of the pairs of stop words hardly ever follow each other",
    "lower_starts": "{} of the sentences begin with a small letter",
    "top_word": "{} of the words are one word, no stop word",
    "listed_words": "{} of the words stand before a comma",
    "variety": "{} of a hundred words in a row are different",
    "sentence_ends": "{} ends of sentences for a word",
    "ended_lines": "{} of the characters are in lines that end like a sentence",
    "loose_words": "{} of the words are in lines without an end and with few stop words",
    "ellipsis_lines": "{} of the lines end in an ellipsis",
    "bullet_lines": "{} of the lines begin with a bullet or number",
    "repeated_lines": "{} of the longer lines are repeats",
    "repeated_line_characters": "{} of the characters are in repeated lines",
    "repeated_paragraphs": "{} of the longer paragraphs are repeats",
    "repeated_paragraph_characters": "{} of the characters are in repeated paragraphs",
    "braces": "{} curly brackets for a word",
    "placeholders": "{} times lorem ipsum",
    **{f"top_{n}_gram": f"{{}} of the characters are one sequence of {n} words" for n in TOPS},
    **{
        f"repeated_{n}_grams": f"{{}} of the characters are in repeated sequences of {n} words"
        for n in REPEATS
    },
}
