"""Figures of a curation: they add up, stay small, and do not depend on who counts."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from foresail.curate.run.excerpt import shorten
from foresail.curate.run.statistics import OTHERS, REASONS, Form, Statistics, add_up, domain_of
from foresail.curate.run.tops import Tops

FORM = Form(labels=("read", "1 step"), seed=5)


def entry(number: int, chance: random.Random) -> dict[str, Any]:
    row = {
        "id": f"d{number}",
        "text": "é" * chance.randrange(200),
        "url": f"https://www.h{chance.randrange(9)}.org/{number}",
        "metadata": {"language": chance.choice(["en", "th", ""])},
    }
    keep = chance.random() < 0.6
    reason = f"reason {chance.randrange(5)}"
    drop = {"step": "1 step", "reason": reason, "detail": "", "document": row}
    return {
        "bytes": chance.randrange(5000),
        "flow": [[1, 100], [int(keep), 50 * keep]],
        "kept": [row] if keep else [],
        "dropped": [] if keep else [drop],
        **({"seen": "as read"} if chance.random() < 0.3 else {}),
    }


def counted(entries: list[dict[str, Any]]) -> dict[str, Any]:
    statistics = Statistics()
    for one in entries:
        statistics.add(one, FORM)
    receipt: dict[str, Any] = json.loads(json.dumps(statistics.as_json()))
    return receipt


def test_pieces_add_up_to_the_whole() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        entries = [entry(number, chance) for number in range(chance.randrange(1, 120))]
        cuts = sorted(chance.randrange(len(entries) + 1) for _ in range(3))
        pieces = [entries[a:b] for a, b in zip([0, *cuts], [*cuts, len(entries)], strict=True)]
        assert add_up(map(counted, pieces)).as_json() == add_up([counted(entries)]).as_json()


def test_examples_are_random_by_seed_and_prefer_documents_that_were_noted_when_read() -> None:
    chance = random.Random(1)
    entries = [entry(number, chance) for number in range(400)]
    shown = counted(entries)["examples"]
    assert len(shown["kept"]) == 12 and all(example["seen"] == "as read" for example in shown["kept"])
    other = Statistics()
    for one in entries:
        other.add(one, Form(labels=FORM.labels, seed=6))
    assert [row["id"] for row in other.examples["kept"]] != [row["id"] for row in shown["kept"]]


def test_endless_reasons_are_counted_together() -> None:
    pieces = []
    for piece in range(3):
        entries = [entry(0, random.Random(2)) for _ in range(500)]
        for number, one in enumerate(entries):
            one["kept"] = []
            document = {"id": f"{piece}-{number}", "text": ""}
            one["dropped"] = [
                {"step": "1 step", "reason": f"{piece} {number}", "detail": "", "document": document}
            ]
        pieces.append(counted(entries))
    total = add_up(pieces)
    assert total.dropped["1 step"].total() == 1500
    assert len(total.dropped["1 step"]) <= REASONS + 1 and total.dropped["1 step"][OTHERS] >= 1200 - REASONS
    assert {*total.examples} <= {f"1 step: {reason}" for reason in total.dropped["1 step"]}


def test_tops_miss_no_more_than_they_say() -> None:
    for seed in range(30):
        chance = random.Random(seed)
        room = chance.choice([1, 3, 10])
        exact, total = Counter[str](), Tops(room)
        for _ in range(chance.randrange(1, 5)):
            piece = Tops(room)
            for _ in range(chance.randrange(300)):
                name = f"n{min(chance.randrange(1, 40), chance.randrange(1, 40))}"
                piece.add(name)
                exact[name] += 1
            total.merge(Tops.from_json(room, json.loads(json.dumps(piece.as_json()))))
        assert len(total.counts) <= room and total.missing <= exact.total() / (room + 1)
        for name, number in exact.items():
            assert number - total.missing <= total.counts.get(name, 0) <= number


def test_domains() -> None:
    assert domain_of("https://www.A.org:8080/b") == "a.org" and domain_of("http://u:p@b.co/") == "b.co"
    assert domain_of("http://[::1]/") == "[::1]" and domain_of("not an address") == domain_of("") == ""
    assert domain_of("http://" + "x" * 10**6) != "" and domain_of("http://://") == ""


def test_shortened_texts_keep_both_ends() -> None:
    assert shorten("abcdefgh", 3, 1) == "abc\n… 4 characters …\nh" and shorten("abcd", 3, 1) == "abcd"
