"""Answers the questions of shop-tasks again, from their text, for `shop_tasks.py`, without the generator's code.

    solver = Solver(Path("foresail/data/made/shop"), Path("db.json.xz"))
    solver.solve("Which brand makes …")     Solved(task="product-info", form="brand", answer="Velmora", …)

It reads two things beside the question: the files of phrases and words, whose templates become patterns and whose
sentences say what they stand for; and the raw table with the file of made-up brands and categories. Language, form
and everything asked are read off the text.
"""

from __future__ import annotations

import json
import lzma
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

LETTERED, DASHED = r"[A-H]\. .+(?:\n[A-H]\. .+)*", r"- .+(?:\n- .+)*"
SLOTS = {
    "card": r"(?:.|\n)+?",
    "dialogue": r"(?:.|\n)+?",
    "choices": LETTERED,
    "variants": DASHED,
    "catalogue": DASHED,
}
SLOTS |= {"offers": f"(?:{LETTERED}|{DASHED})", "quantity": r"\d+", "count": r"\d+", "other_count": r"\d+"}
FRAMES = (
    *("product-info", "extraction", "classification", "recommendation", "similarity", "numerical"),
    *("generation", "questioning", "matching", "reviews", "rewriting", "dialogue"),
)
KINDS = ("text", "choice", "number", "amount", "yes_no", "list", "json", "title", "search")

Facts = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Listed:
    """An offer as the text shows it: what stands behind each label, without brand, price and stock."""

    name: str
    facts: Facts
    brand: str | None = None
    price: Decimal | None = None
    in_stock: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Solved:
    """`basis`: text; categories (beside the text, those of the table); constraints (what an answer must meet)."""

    language: str
    task: str
    form: str
    answer: Any
    basis: str = "text"
    offers: Sequence[Listed] = field(default_factory=tuple)


class Solver:
    def __init__(self, folder: Path, table: Path) -> None:
        with lzma.open(table) as file:
            self.products: dict[str, Any] = {one["name"]: one for one in json.load(file)["products"].values()}
        self.made_up = tomllib.loads((folder / "tables/tau2.toml").read_text(encoding="utf-8"))
        codes = sorted(file.stem for file in (folder / "words").glob("*.toml"))
        self.tongues = {code: Tongue(folder, code, self.products) for code in codes}

    def solve(self, question: str) -> list[Solved]:
        """All readings; there should be one."""
        return [
            Reading(self, tongue, task, form, slots).solved()
            for tongue in self.tongues.values()
            for task, form, slots in tongue.matches(question)
        ]


class Tongue:
    """The patterns of a language."""

    def __init__(self, folder: Path, code: str, products: Mapping[str, Any]) -> None:
        self.code = code
        self.words = tomllib.loads((folder / f"words/{code}.toml").read_text(encoding="utf-8"))
        self.phrases = tomllib.loads((folder / f"phrases/{code}.toml").read_text(encoding="utf-8"))
        self.marks, self.labels = self.words["marks"], self.words["labels"]
        openings = {*self.phrases["openings"]["train"], *self.phrases["openings"]["test"]}
        start = "|".join(map(re.escape, sorted(openings, key=len, reverse=True)))
        self.ends = {
            line: kind
            for kind in KINDS
            for line in (
                *self.phrases["instructions"][kind]["train"],
                *self.phrases["instructions"][kind]["test"],
            )
        }
        self.attributes_of = {
            one["name"]: {
                self.translated(*o)[0] for v in one["variants"].values() for o in v["options"].items()
            }
            for one in products.values()
        }
        every = {name for names in self.attributes_of.values() for name in names}
        self.attributes = sorted(sorted(every), key=len, reverse=True)
        self.names = sorted(products, key=len, reverse=True)
        either = "|".join(map(re.escape, self.attributes))
        self.known = {"attribute": f"(?i:{either})", "given": f"(?:{either})"}
        self.patterns = [
            (task, form, pattern_of(template, self.known, f"(?:{start})"))
            for task in FRAMES
            for form, of in self.phrases[task].items()
            if "train" in of and "{" in of["train"][0]
            for template in (*of["train"], *of["test"])
            if (task, form) not in LINES
        ]

    def matches(self, question: str) -> Iterator[tuple[str, str, Facts]]:
        body, _, end = question.rpartition("\n")
        if end not in self.ends:
            return
        for task, form, pattern in self.patterns:
            if match := pattern.fullmatch(body):
                yield task, form, match.groupdict()

    def translated(self, name: str, value: str) -> tuple[str, str]:
        """An option of the raw table in this language."""
        name = {"brand": "line", "bagged/bagless": "dust collection"}.get(name, name)
        values, attribute = self.words["values"], self.words["attributes"].get(name.lower(), name)
        word = values.get(f"{name}:{value}".lower()) or values.get(value.lower())
        parts = re.split(r"(?<=\d)[ -]?(?=[A-Za-z]+$)", value)
        if word is None and len(parts) == 2 and parts[1].lower() in self.words["measures"]:
            word = self.words["measures"][parts[1].lower()].replace(
                "{}", parts[0].replace(".", self.marks["decimal"])
            )
        return attribute, word or value

    def amount(self, text: str) -> Decimal:
        digits = re.sub(rf"[^\d{re.escape(self.marks['decimal'])}]", "", text)
        return Decimal(digits.replace(self.marks["decimal"], "."))

    def pieces(self, text: str) -> list[str]:
        return text.split(self.marks["list"])

    def pair(self, text: str) -> tuple[str, str]:
        """ "size M" -> ("size", "M"): the longest attribute that the text begins with."""
        before, between = (
            self.marks["pair"].split("{attribute}")[0],
            self.marks["pair"].split("}")[1].split("{")[0],
        )
        for name in self.attributes:
            if text.startswith(before + name + between):
                return name, text[len(before + name + between) :]
        raise ValueError(f"no option: {text!r}")

    def facts(self, name: str, pairs: Sequence[tuple[str, str]]) -> Listed:
        known = dict(pairs)
        brand, price = known.pop(self.labels["brand"], None), known.pop(self.labels["price"], None)
        stock = known.pop(self.labels["stock"], None)
        lower = {one.casefold(): one for one in self.attributes_of[name]}  # a laptop has ram, a tablet RAM
        return Listed(
            name=name,
            facts={lower[label.casefold()]: value for label, value in known.items()},
            brand=brand,
            price=None if price is None else self.amount(price),
            in_stock=None
            if stock is None
            else {self.labels["in_stock"]: True, self.labels["sold_out"]: False}[stock],
        )

    def pairs_in(self, text: str, separator: str) -> list[tuple[str, str]]:
        cut = [one.partition(self.marks["colon"]) for one in text.split(separator)]
        return [(label, value) for label, _, value in cut]

    def inline(self, text: str) -> Listed:
        """T-Shirt (Color: blue; Size: M)"""
        name, opened, rest = text.partition(self.marks["open"])
        inside = rest.removesuffix(self.marks["close"]) if opened else ""
        return self.facts(name, self.pairs_in(inside, self.marks["semicolon"]) if inside else [])

    def card(self, text: str) -> Listed:
        """On lines, between bars, or in one line."""
        for separator in ("\n", " | "):
            if separator in text:
                (_, name), *rest = self.pairs_in(text, separator)
                return self.facts(name, rest)
        return self.inline(text)

    def listed(self, text: str) -> list[Listed]:
        """Lines that begin with a dash or a letter."""
        return [self.inline(re.sub(r"^(?:- |[A-H]\. )", "", line)) for line in text.split("\n")]

    def variants(self, name: str, text: str) -> list[Listed]:
        lines = [line.removeprefix("- ") for line in text.split("\n")]
        return [self.facts(name, self.pairs_in(line, self.marks["semicolon"])) for line in lines]

    def lettered(self, text: str) -> dict[str, str]:
        return {line[0]: line[3:] for line in text.split("\n")}

    def phrase(self, text: str, *path: str) -> dict[str, str]:
        """The slots of a made sentence."""
        place = self.phrases
        for name in path:
            place = place[name]
        for template in (*place["train"], *place["test"]):
            if match := pattern_of(template, self.known).fullmatch(text):
                return match.groupdict()
        raise ValueError(f"no {'.'.join(path)}: {text!r}")

    def advertised(self, text: str) -> Listed:
        slots = self.phrase(text, "advertisements", "with_brand")
        facts = {}
        for piece in self.pieces(slots["features"]):
            label, colon, value = piece.partition(self.marks["colon"])
            if not (colon and label in self.attributes):
                label, value = self.feature(piece)
            facts[label] = value
        return Listed(name=slots["name"], brand=slots["brand"], facts=facts)

    def feature(self, piece: str) -> tuple[str, str]:
        """The pattern with the most letters of its own that fits."""
        patterns = self.phrases["features"]["attributes"].items()
        for label, pattern in sorted(patterns, key=lambda one: -len(one[1])):
            if match := pattern_of(pattern, {}).fullmatch(piece):
                return label, match["value"]
        raise ValueError(f"no feature: {piece!r}")


LINES = {("reviews", aspect) for aspect in ("delivery", "packaging", "quality", "price", "service")}
LINES |= {
    ("dialogue", line) for line in ("greeting", "welcome", "about", "listening", "noted", "change", "changed")
}
LINES |= {
    ("dialogue", line) for line in ("recount", "ordering", "tracking", "returns", "defect", "availability")
}
LINES |= {("dialogue", line) for line in ("discount", "payment")}


def pattern_of(template: str, known: Mapping[str, str], start: str = "") -> re.Pattern[str]:
    """pattern_of("How many {name}?", {}) fits "How many lamps?"; `known` are the patterns of some slots."""
    pattern, seen = start, set()
    for text, name in re.findall(r"([^{]*)(?:\{(\w+)\})?", template):
        pattern += re.escape(text)
        if name in seen:
            pattern += f"(?P={name})"
        elif name:
            pattern += f"(?P<{name}>{known.get(name) or SLOTS.get(name, '.+?')})"
            seen.add(name)
    return re.compile(pattern)


class Reading:
    """One question, read as a form."""

    def __init__(self, solver: Solver, tongue: Tongue, task: str, form: str, slots: Facts) -> None:
        self.solver, self.tongue, self.task, self.form, self.slots = solver, tongue, task, form, slots
        self.shown: list[Listed] = []

    def solved(self) -> Solved:
        answer = getattr(self, f"{self.task}_{self.form}".replace("-", "_"))()
        basis = "constraints" if self.form in ("title", "search") else "text"
        basis = "categories" if self.task == "classification" else basis
        return Solved(
            language=self.tongue.code,
            task=self.task,
            form=self.form,
            answer=answer,
            basis=basis,
            offers=self.shown,
        )

    def offers(self) -> list[Listed]:
        self.shown = self.tongue.listed(self.slots["offers"])
        return self.shown

    def variants(self) -> list[Listed]:
        self.shown = self.tongue.variants(self.slots["name"], self.slots["variants"])
        return self.shown

    def card(self) -> Listed:
        card = self.tongue.card(self.slots["card"])
        self.shown = [*self.shown, card]
        return card

    def wished(self, text: str) -> Facts:
        return dict(self.tongue.pair(piece) for piece in self.tongue.pieces(text))

    def letter(self, fitting: Sequence[bool]) -> str:
        return one_of(["ABCDEFGH"[place] for place, fits in enumerate(fitting) if fits])

    def product_info_brand(self) -> str | None:
        return one_of([offer.brand for offer in self.offers() if offer.name == self.slots["name"]])

    def product_info_brand_count(self) -> Decimal:
        return Decimal(sum(offer.brand == self.slots["brand"] for offer in self.offers()))

    def product_info_comes_in(self) -> str:
        lines = [self.tongue.inline(line.removeprefix("- ")) for line in self.slots["catalogue"].split("\n")]
        asked = self.slots["attribute"].casefold()
        comes = [
            {name.casefold(): self.tongue.pieces(of) for name, of in line.facts.items()} for line in lines
        ]
        return one_of(
            [
                line.name
                for line, of in zip(lines, comes, strict=True)
                if self.slots["value"] in of.get(asked, [])
            ]
        )

    def extraction_json(self) -> dict[str, Any]:
        facts = self.tongue.advertised(self.slots["text"]).facts
        return {key: facts.get(key) for key in self.keys()}

    def extraction_value(self) -> str:
        return self.tongue.advertised(self.slots["text"]).facts[self.slots["attribute"]]

    def keys(self, slot: str = "keys") -> list[str]:
        keys: list[str] = [json.loads(key) for key in self.tongue.pieces(self.slots[slot])]
        return keys

    def category(self, name: str) -> str:
        category: str = self.solver.made_up[name]["category"]
        word: str = self.tongue.words["categories"].get(category, category)
        return word

    def classification_category(self) -> str:
        right = self.category(self.card().name)
        return one_of(
            [letter for letter, one in self.tongue.lettered(self.slots["choices"]).items() if one == right]
        )

    def classification_odd_one_out(self) -> str:
        categories = [self.category(offer.name) for offer in self.offers()]
        return self.letter([categories.count(one) == 1 for one in categories])

    def recommendation_wishes(self) -> str:
        wishes, budget = self.wished(self.slots["wishes"]).items(), self.tongue.amount(self.slots["budget"])
        return self.letter([wishes <= one.facts.items() and price_of(one) <= budget for one in self.offers()])

    def recommendation_cheapest(self) -> str:
        asked, value = self.slots["attribute"], self.slots["value"]
        prices = [price_of(one) if one.facts.get(asked) == value else None for one in self.offers()]
        least = min(price for price in prices if price is not None)
        return self.letter([price == least for price in prices])

    def similarity_same(self) -> str:
        self.shown = [self.tongue.inline(self.slots[one]) for one in ("first", "second")]
        return str(self.tongue.words["yes" if self.shown[0] == self.shown[1] else "no"][0])

    def similarity_closest(self) -> str:
        offers, card = self.offers(), self.card()
        common = [len(card.facts.items() & one.facts.items()) for one in offers]
        return self.letter([count == max(common) for count in common])

    def numerical_discount(self) -> Fraction:
        whole = Fraction(price_of(self.card())) * int(self.slots["quantity"])
        return whole * (100 - int(self.slots["discount"])) / 100

    def numerical_change(self) -> Fraction:
        self.shown = [self.tongue.inline(self.slots[one]) for one in ("first", "second")]
        counts = (int(self.slots["count"]), int(self.slots["other_count"]))
        spent = sum(Fraction(price_of(one)) * count for one, count in zip(self.shown, counts, strict=True))
        return Fraction(self.tongue.amount(self.slots["paid"])) - spent

    def numerical_budget(self) -> int:
        """One more is bought until the money does not do."""
        price, count = price_of(self.card()), 0
        budget, fee = self.tongue.amount(self.slots["budget"]), self.tongue.amount(self.slots["fee"])
        while fee + price * (count + 1) <= budget:
            count += 1
        return count

    def numerical_stock(self) -> int:
        asked, value = self.slots["attribute"], self.slots["value"]
        return sum(one.facts.get(asked) == value and one.in_stock is True for one in self.variants())

    def generation_title(self) -> dict[str, Any]:
        card = self.card()
        values = [card.facts[name] for name in self.tongue.pieces(self.slots["attributes"])]
        return {
            "contains": [card.brand, card.name, *values],
            "excludes": [],
            "limit": int(self.slots["limit"]),
        }

    def generation_listing(self) -> dict[str, Any]:
        costs = self.tongue.phrases["reasons"]["costs"]
        text, price = re.fullmatch(rf"(.+?){pattern_of(costs, {}).pattern}", self.slots["note"]).groups()  # type: ignore[union-attr]
        note = self.tongue.advertised(text)
        options = {key: note.facts[key] for key in self.keys("options")}
        assert options == note.facts
        fields = {
            "title": note.name,
            "brand": note.brand,
            "price": self.tongue.amount(price),
            "options": options,
        }
        return {key: fields[key] for key in self.keys()}

    def chosen(self) -> Listed:
        facts = self.wished(self.slots["choice"])
        place = one_of([str(place) for place, one in enumerate(self.variants()) if one.facts == facts])
        return self.shown[int(place)]

    def questioning_stock(self) -> str:
        return str(self.tongue.words["yes" if self.chosen().in_stock else "no"][0])

    def questioning_price(self) -> Decimal:
        return price_of(self.chosen())

    def questioning_values(self) -> set[str]:
        having = [one for one in self.variants() if one.facts.get(self.slots["given"]) == self.slots["value"]]
        asked = self.slots["attribute"]
        return {one.facts[asked] for one in having if one.in_stock and asked in one.facts}

    def searched(self, offer: Listed) -> str:
        """What a search is to an offer: it must be the name and some of the options, in any order."""
        query, name = self.slots["query"], offer.name.lower()
        product = next((one for one in self.tongue.names if f"{query} ".startswith(f"{one.lower()} ")), None)
        if product != offer.name:
            return "other_product"
        values = [option for name, value in offer.facts.items() for option in (value, f"{name} {value}")]
        return "exact" if is_made_of(query[len(name) :], [one.lower() for one in values]) else "other_options"

    def matching_relevance(self) -> str:
        label = self.tongue.phrases["labels"][self.searched(self.card())]
        return one_of(
            [letter for letter, one in self.tongue.lettered(self.slots["choices"]).items() if one == label]
        )

    def matching_which(self) -> str:
        return self.letter([self.searched(offer) == "exact" for offer in self.offers()])

    def opinions(self) -> dict[str, str]:
        """The sentences of a review, taken off its start one by one."""
        rest, said = self.slots["review"], {}
        known = {
            sentence: (aspect, opinion)
            for _, aspect in sorted(LINES & {("reviews", one) for one in self.tongue.phrases["aspects"]})
            for opinion in ("good", "bad")
            for of in (self.tongue.phrases["reviews"][aspect][opinion],)
            for sentence in (*of["train"], *of["test"])
        }
        while rest:
            sentence = max((one for one in known if rest.startswith(one)), key=len)
            aspect, opinion = known[sentence]
            assert aspect not in said
            said[aspect], rest = opinion, rest[len(sentence) :].removeprefix(self.tongue.marks["sentence"])
        return said

    def reviews_aspect(self) -> str:
        self.card()
        aspects = {name: aspect for aspect, name in self.tongue.phrases["aspects"].items()}
        opinion = self.opinions().get(aspects[self.slots["aspect"]], "none")
        label = self.tongue.phrases["opinions"][opinion]
        return one_of(
            [letter for letter, one in self.tongue.lettered(self.slots["choices"]).items() if one == label]
        )

    def reviews_complaints(self) -> set[str]:
        self.card()
        bad = {
            self.tongue.phrases["aspects"][one]
            for one, opinion in self.opinions().items()
            if opinion == "bad"
        }
        assert bad <= {*self.tongue.pieces(self.slots["aspects"])}
        return bad

    def rewriting_search(self) -> dict[str, Any]:
        said = self.tongue.phrase(self.slots["request"], "requests", "refusing")
        wanted = self.wished(said["options"])
        contains = [said["name"], *wanted.values()]
        return {"contains": contains, "excludes": [said["refused"]], "limit": int(self.slots["limit"])}

    def rewriting_filters(self) -> dict[str, Any]:
        said = self.tongue.phrase(self.slots["request"], "requests", "priced")
        wanted = self.wished(said["options"])
        options = {key: wanted[key] for key in self.keys("options")}
        fields = {
            "product": said["name"],
            "max_price": self.tongue.amount(said["budget"]),
            "options": options,
        }
        return {key: fields[key] for key in self.keys()}

    def lines(self) -> list[str]:
        return [line.partition(self.tongue.marks["colon"])[2] for line in self.slots["dialogue"].split("\n")]

    def dialogue_intent(self) -> str:
        last, intents = self.lines()[-1], self.tongue.phrases["intents"]
        place = self.tongue.phrases["dialogue"]
        label = one_of(
            [name for one, name in intents.items() if last in (*place[one]["train"], *place[one]["test"])]
        )
        return one_of(
            [letter for letter, one in self.tongue.lettered(self.slots["choices"]).items() if one == label]
        )

    def dialogue_order(self) -> dict[str, Any]:
        order, *changes = self.lines()[::2]
        said = self.tongue.phrase(order, "dialogue", "ordering")
        quantity, options = int(said["quantity"]), self.wished(said["options"])
        change = self.tongue.phrase(changes[0], "dialogue", "change")
        assert options[change["attribute"]] == change["before"]
        options[change["attribute"]] = change["value"]
        if len(changes) > 1:
            quantity = int(self.tongue.phrase(changes[1], "dialogue", "recount")["quantity"])
        fields = {
            "product": said["name"],
            "quantity": quantity,
            "options": {key: options[key] for key in self.keys("options")},
        }
        return {key: fields[key] for key in self.keys()}


def price_of(offer: Listed) -> Decimal:
    assert offer.price is not None
    return offer.price


def one_of(answers: Sequence[Any]) -> Any:
    """The only answer; a question with none or two is wrong."""
    if len(answers) != 1:
        raise ValueError(f"{len(answers)} answers: {answers}")
    return answers[0]


def is_made_of(text: str, parts: Sequence[str]) -> bool:
    """Whether a text is some of the parts, each behind a space."""
    return not text or any(
        text.startswith(f" {part}") and is_made_of(text[len(part) + 1 :], parts)
        for part in parts
        if text[len(part) + 1 :][:1] in ("", " ")
    )
