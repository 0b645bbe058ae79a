"""Personal data in texts of any script: what is masked, what stays, twice as once, and how far patterns read."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest

from foresail.curate import pii
from foresail.curate.document import Document, Drop
from foresail.curate.pii.find import KINDS, find
from foresail.curate.pii.step import MaskPii

# made for this test; numbers with check digits are valid, and nobody's
DATA = {
    "email": "ann.b+c@mail.example.org x_1@y.co O'Neil@xn--bcher-kva.example 7@a-b.museum",
    "ip": "93.184.216.34 208.67.222.123 2606:2800:220:1::93 2a00:1450:4001:0082:0000:0000:0000:200e",
    "card": "4111-1111-1111-1111 378282246310005 5555555555554444 6011111111111117 30569309025904",
    "iban": "DE89370400440532013000 GB82WEST12345698765432 BR1500000000000010932840814P2",
    "national_id": "529.982.247-25 11.222.333/0001-81 1-1017-00230-70-8 800101-14-5566 3273014101900001 "
    "11010519491231002X 123-45-6789",
    "secret": "AKIAIOSFODNN7EXAMPLE ghp_abcdefghijklmnopqrstuvwxyz0123456789 sk-proj-abcdefghij0123456789XY "
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
SPACED = {
    "phone": "+62 812-3456-7890|+6281234567890|(021) 555-1234|0812-3456-7890|0812 3456 7890|02-123-4567|"
    "0-2123-4567|"
    "081-234-5678|๐๘๑–๒๓๔–๕๖๗๘|0912 345 678|(024) 3825 1234|"
    "+84 24 3825 1234|012-345 6789|03-1234 5678|0917 123 4567|"
    "(02) 8123 4567|+65 6123 4567|(11) 91234-5678|+55 (11) 91234-5678|11 91234-5678|(555) 234-5678|555-234-5678|"
    "+1 (555) 234-5678|+44 (0) 20 7946 0958|+33 6 12 34 56 78|+86 139 1234 5678",
    "card": "4111 1111 1111 1111|3782 822463 10005",
    "iban": "GB82 WEST 1234 5698 7654 32",
    "secret": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow12\n-----END RSA PRIVATE KEY-----",
}
SAMPLES = [(kind, text) for kind, texts in DATA.items() for text in texts.split()]
SAMPLES += [(kind, text) for kind, texts in SPACED.items() for text in texts.split("|")]
BEHIND_A_WORD = (
    ("phone", "No. HP: 081234567890"),
    ("phone", "Call 6123 4567"),
    ("phone", "โทร0812345678"),
    ("phone", "电话：13912345678"),
    ("phone", "Liên hệ\n0987654321"),
    ("national_id", "CPF 52998224725"),
    ("national_id", "บัตรประชาชน 1101700230708"),
    ("national_id", "MyKad 800101145566"),
    ("ip", "server 8.8.4.4"),
    ("secret", 'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"'),
)
CLEAN = """version 1.2.3.4
firmware v99.184.216.34
192.168.0.1, 10.1.2.3, 127.0.0.1, 203.0.113.9 and 2001:db8::1
2024-01-02, 02/01/2024, 12:30:45, 1990-1995
ISBN 978-0-306-40615-7
ISBN 0-306-40615-2
Rp 1.250.000.000 and US$ 4,111,111,111.11
order no 0812-3456-7890
12345678901234567890
4111111111111112
529.982.247-26
800141-14-5566
x+12345678901 = 2^{4111111111111111} + \\frac{378282246310005}{2}
$555-234-5678$
0.4111111111111111
git@github.com:a/b.git lodash@4.17.21 icon@2x.png @media @app.route
111 222 333 444 555 666 777
0812 3456 7890 1234 5678
(2008 + 2007)(2008 - 2007) = 4015
std::vector dead::beef a::b
call in 2019-2020 or on 1990-01-02
GB82 WEST 1234 5698 7654 33
https://a.org:8080/@user https://$USER:$PASSWORD@localhost
ab-risk-management-consulting-2024 task-abcdefghijklmnopqrstuvwxyz""".split("\n")
LETTERS = "abcxyz éüß กขคงจ ากิ 的是我 ăâđê абв αβγ עבר 한글 \n.,;!?"
SIGNS = "0123456789 0123456789 +-.()/:@<>[]{}$%='\"\n\u00a0–๑٣xXeJ_\x1a"


def masked(text: str, **settings: object) -> Document:
    outcome = MaskPii(**settings).open()(Document(id="1", text=text))
    assert isinstance(outcome, Document)
    return outcome


def prose(chance: random.Random) -> str:
    return "".join(chance.choices(LETTERS, k=chance.randrange(40)))


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_masked_in_any_text(kind: str, sample: str) -> None:
    chance = random.Random(sample)
    for _ in range(20):
        before, behind = (
            prose(chance) + chance.choice([" ", "\n", "(", ": ", "IP:"]),
            chance.choice([" ", "\n", ") ", ", ", "。", "; "]) + prose(chance),
        )
        outcome = masked(before + sample + behind)
        assert outcome.text == f"{before}<{kind}>{behind}"
        assert outcome.metadata["pii"] == {kind: 1}


@pytest.mark.parametrize(("kind", "text"), BEHIND_A_WORD)
def test_a_word_says_what_a_number_is(kind: str, text: str) -> None:
    assert masked(text).metadata["pii"] == {kind: 1}
    number = re.split(r"[ \n：]|(?<=ร)(?=0)", text)[-1].strip('"')
    assert find(f"see {number}") == []


@pytest.mark.parametrize("text", CLEAN)
def test_stays(text: str) -> None:
    assert [text[start:end] for _, start, end in find(text)] == []


def test_in_markdown_and_code() -> None:
    text = "[me](mailto:ann@b.org)\n\n```\nurl = 'https://ann:pw1@b.org/'  # 93.184.216.34\n```\n`+6281234567890`"
    assert masked(text).text == (
        "[me](mailto:<email>)\n\n```\nurl = 'https://<secret>@b.org/'  # <ip>\n```\n`<phone>`"
    )


def test_only_the_kinds_that_are_asked_for() -> None:
    text = " | ".join(sample for _, sample in SAMPLES)
    assert set(masked(text).metadata["pii"]) == set(KINDS)
    for kind in KINDS:
        assert set(masked(text, kinds=kind).metadata["pii"]) == {kind}
    with pytest.raises(ValueError, match="kinds"):
        MaskPii(kinds=())


def test_shape_keeps_length_and_signs() -> None:
    outcome = masked("Mail Ann.b2@c.org or +62 812-3456.", replacement="shape")
    assert outcome.text == "Mail Xxx.x0@x.xxx or +62 812-3456."
    text = " | ".join(sample for _, sample in SAMPLES)
    signs = re.sub(r"\w", "", masked(text, replacement="shape").text)
    assert signs == re.sub(r"\w", "", text)


def test_many_are_a_reason_to_drop() -> None:
    step = MaskPii(most_per_1000_words=20).open()
    words = "word " * 400
    assert isinstance(step(Document(id="1", text=words + "a@b.org")), Document)
    drop = step(Document(id="1", text=words + "a@b.org, " * 20))
    assert isinstance(drop, Drop) and drop.reason == "personal_data" and "'email': 20" in drop.detail
    assert isinstance(step(Document(id="1", text="ann@b.org")), Document)


@pytest.mark.parametrize("replacement", ["placeholder", "shape"])
@pytest.mark.parametrize("seed", range(3))
def test_masking_again_changes_nothing(seed: int, replacement: str) -> None:
    """Samples, cut samples, words that say what numbers are, and signs, in any order."""
    chance = random.Random(seed)
    words = [
        "Telp",
        "CPF",
        "NIK",
        "ISBN",
        "from",
        "version",
        "aws secret=",
        "://",
        "@",
        "-----BEGIN PRIVATE KEY-----",
    ]
    for _ in range(700):
        parts = []
        for _ in range(chance.randrange(1, 8)):
            sample = chance.choice(SAMPLES)[1]
            cut = chance.randrange(len(sample))
            parts += [
                chance.choice([sample, sample, sample[cut:], sample[:cut], chance.choice(words)]),
                "".join(chance.choices(SIGNS, k=chance.randrange(3))),
            ]
        once = masked("".join(parts), replacement=replacement)
        again = masked(once.text, replacement=replacement)
        assert again.text == once.text, parts
        assert "pii" not in again.metadata, parts


def test_nothing_to_look_for_nothing_changes() -> None:
    chance = random.Random(0)
    scripts = [
        *range(0x20, 0x250),
        *range(0x370, 0x700),
        *range(0x900, 0x1200),
        *range(0x4E00, 0x4F00),
        0xD800,
        0x1F600,
    ]
    letters = [chr(code) for code in scripts if not chr(code).isdecimal() and chr(code) != "@"]
    for _ in range(1000):
        text = "".join(chance.choices(letters, k=200))
        document = Document(id="1", text=text)
        assert MaskPii().open()(document) is document


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for module in iter_modules(pii.__path__):
        for name, value in vars(import_module(f"{pii.__name__}.{module.name}")).items():
            for part in flat(value):
                yield f"{module.name}.{name}", part


def flat(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from flat(part)


def test_patterns_read_a_bounded_number_of_characters_from_each_place() -> None:
    """So the time is linear. RUN alone has no bound, and its search goes on behind what it has read."""
    widths = {name: _width(pattern) for name, pattern in patterns()}
    assert len(widths) > 20
    unbounded = {name for name, width in widths.items() if width > 20_000}
    assert unbounded == {"number.RUN", "phones.GROUP"}


def _width(pattern: re.Pattern[str]) -> int:
    from re import _parser  # type: ignore[attr-defined]

    width: int = _parser.parse(pattern.pattern, pattern.flags).getwidth()[1]
    return width


def test_hostile_texts_end() -> None:
    for piece in (
        "1",
        "1 ",
        "@",
        "a@",
        "a.",
        "+1",
        "(0",
        "eyJ-",
        "eyJa.",
        "-----BEGIN PRIVATE KEY-----",
        "aws ",
        "://a:",
    ):
        text = piece * (40_000 // len(piece))
        assert masked(text).text
    assert masked("\ud800" * 1000 + "1234567890" + "\0" * 1000).text
