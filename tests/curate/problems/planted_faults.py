"""Made problems of maths, sound or with one planted fault each, in random wordings."""

from __future__ import annotations

import random
from collections.abc import Callable

Row = dict[str, str]
NAMES = ("Lucy", "Omar", "Wei", "Ines")
THINGS = ("stickers", "marbles", "apples", "tickets")


def sound(rng: random.Random) -> Row:
    """One operation, told in one of several ways; the answer is right and so is the solution."""
    one, other = rng.randint(20, 99), rng.randint(2, 19)
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    asked, result = rng.choice(
        (
            (
                f"{name} has {one} {thing} and gets {other} more. How many {thing} does {name} have now?",
                one + other,
            ),
            (
                f"{name} had ${one}$ {thing} and gave away ${other}$ of them. Find the number that is left.",
                one - other,
            ),
            (f"Compute ${one} \\cdot {other}$.", one * other),
            (f"Each of {one} boxes has {other} {thing}. What is the total number of {thing}?", one * other),
            (f"Let $x$ and $y$ be real numbers with $x + {other} = {one}$ and $y = 2x$. Find $(x,y)$.", None),
        )
    )
    answer = str(result) if result is not None else f"({one - other},{2 * (one - other)})"
    return {
        "problem": asked,
        "answer": answer,
        "solution": rf"We work it out. The answer is $\boxed{{{answer}}}$.",
    }


def with_figure(row: Row, rng: random.Random) -> Row:
    words = rng.choice(
        ("As shown in the figure, ", "In the diagram below, ", "See the figure. ", "In the given figure, ")
    )
    return row | {"problem": words + row["problem"]}


def with_picture(row: Row, rng: random.Random) -> Row:
    link = rng.choice(("![](images/7.png)", r"\includegraphics{fig3}", '<img src="a.gif">', "[image]"))
    return row | {"problem": f"{row['problem']} {link}"}


def with_link(row: Row, rng: random.Random) -> Row:
    return row | {"problem": f"{row['problem']} See {rng.choice(('https://a.org/x', 'www.example.com/y'))}"}


def with_options(row: Row, rng: random.Random) -> Row:
    values = [row["answer"], *(str(rng.randint(100, 999)) for _ in range(rng.choice((2, 3, 4))))]
    rng.shuffle(values)
    form = rng.choice(("({}) ", "{}. ", "{}) ", "\\textbf{{({})}} ", "**{})** "))
    options = rng.choice((" ", "\n", " \\qquad ")).join(
        form.format("ABCDE"[place]) + value for place, value in enumerate(values)
    )
    letter = "ABCDE"[values.index(row["answer"])]
    answer = letter if rng.random() < 0.5 else row["answer"]
    return {"problem": f"{row['problem']}\n{options}", "answer": answer}


def as_proof(row: Row, rng: random.Random) -> Row:
    statement = rng.choice(
        (
            "Prove that $a^2 + b^2 \\ge 2ab$ for all real $a$, $b$.",
            "Let $n$ be odd. Show that $n^2 - 1$ is even.",
        )
    )
    return {"problem": statement, "answer": rng.choice(("0", "a^2+b^2 \\ge 2ab", "1"))}


def as_yes_or_no(row: Row, rng: random.Random) -> Row:
    return {
        "problem": "Is $2^{61}-1$ a prime number?",
        "answer": rng.choice(("Yes", "no", r"\text{Yes}", "True", "$\\text{No}$")),
    }


def with_parts(row: Row, rng: random.Random) -> Row:
    first, second = rng.choice(
        (("(1) ", "(2) "), ("(a) ", "(b) "), ("a) ", "b) "), ("$(1)$ ", "$(2)$ "), ("1. ", "2. "))
    )
    gap = "\n"
    return row | {"problem": f"A set is given.{gap}{first}Find its size.{gap}{second}{row['problem']}"}


def without_answer(row: Row, rng: random.Random) -> Row:
    none = rng.choice(("", " ", "See solution", "proof", "N/A", "$$", "Answers may vary.", "not given"))
    return {"problem": row["problem"], "answer": none}


def with_damage(row: Row, rng: random.Random) -> Row:
    return row | {
        "problem": row["problem"]
        + rng.choice((" \ufffd\ufffd", " 3 \times 4".replace("\\t", "\t"), " â€œ5â€", " \x0crac"))
    }


def with_solution_inside(row: Row, rng: random.Random) -> Row:
    return row | {
        "problem": row["problem"]
        + rng.choice((rf" $\boxed{{{row['answer']}}}$", f"\nAnswer: {row['answer']}"))
    }


def with_wrong_solution(row: Row, rng: random.Random) -> Row:
    return row | {"solution": rf"So it is $\boxed{{{rng.randint(10_000, 99_999)}}}$."}


def with_damaged_answer(row: Row, rng: random.Random) -> Row:
    return {
        "problem": row["problem"],
        "answer": rng.choice((r"\frac{1}{", r"2+\frac{\}{p}i2", r"{125normal{miles}}")),
    }


FORM: dict[str, Callable[[Row, random.Random], Row]] = {
    "figure": with_figure,
    "picture": with_picture,
    "link": with_link,
    "choice": with_options,
    "proof": as_proof,
    "guessable": as_yes_or_no,
    "several": with_parts,
    "no_answer": without_answer,
    "mangled": with_damage,
    "solved": with_solution_inside,
}
ANSWERS: dict[str, Callable[[Row, random.Random], Row]] = {
    "contradicted": with_wrong_solution,
    "unreadable": with_damaged_answer,
}
