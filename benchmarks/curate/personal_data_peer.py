"""For `personal_data.py`, in an interpreter with faker and rivals: makes personal data, and finds it. No Foresail.

python personal_data_peer.py                       # prints which rivals this interpreter has
python personal_data_peer.py make SEED COUNT OUT   # OUT: {"id": [[kind, text], …], …, "decoys": [text, …]}
python personal_data_peer.py datatrove IN OUT      # IN: JSON list of texts; OUT: {"seconds", "spans"}
"""

from __future__ import annotations

import ipaddress
import json
import logging
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Finder = Callable[[str], list[tuple[int, int]]]
PACKAGES = {"datatrove": "datatrove", "presidio, patterns": "presidio_analyzer", "scrubadub": "scrubadub"}
LOCALES = {
    "id": "id_ID", "th": "th_TH", "vi": "vi_VN", "pt": "pt_BR", "tl": "fil_PH", "en": "en_US", "zh": "zh_CN",
}  # fmt: skip
REGIONS = ["ID", "MY", "TH", "VN", "PH", "BR", "SG", "US", "CN"]
RECOGNIZERS = "Email Phone CreditCard Iban Ip UsSsn ThTnin".split()


def made(seed: int, count: int) -> dict[str, list[Any]]:
    faker = import_module("faker")
    found: dict[str, list[Any]] = {}
    european = faker.Faker(["de_DE", "en_GB", "fr_FR", "nl_NL", "pt_PT"])  # most of the seven have no IBAN
    european.seed_instance(seed)
    for language, locale in LOCALES.items():
        fake = faker.Faker(locale)
        fake.seed_instance(seed)
        found[language] = [item for _ in range(count) for item in one_of_each(fake, european, language)]
    fake = faker.Faker("en_US")
    fake.seed_instance(seed)
    found["decoys"] = [decoy for _ in range(count) for decoy in decoys(fake)]
    return found


def one_of_each(fake: Any, european: Any, language: str) -> list[tuple[str, str]]:
    items = [
        ("email", fake.email()),
        ("email", fake.free_email()),
        ("phone", phone(fake, language)),
        ("phone", phone(fake, language)),
        ("card", card(fake)),
        ("iban", european.iban()),
        ("ip", fake.ipv4_public()),
        ("ip", global_v6(fake)),
        ("secret", fake.bothify("AKIA" + "?" * 16, letters="ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")),
        ("secret", "ghp_" + fake.pystr(36, 36)),
    ]
    if language == "pt":
        items += [("national_id", fake.cpf()), ("national_id", fake.cnpj())]
    elif language in ("th", "zh", "en"):
        items += [("national_id", fake.ssn())] * 2
    return items


def card(fake: Any) -> str:
    """Locales name issuers differently: Visa, Mastercard and American Express by their first digits."""
    number = ""
    while not number.startswith(("4", "5", "34", "37")) or len(number) < 15:
        number = str(fake.credit_card_number())
    return number


def phone(fake: Any, language: str) -> str:
    """faker has no general one for the Philippines."""
    if language != "tl":
        return str(fake.phone_number())
    return str(fake.random_element((fake.mobile_number, fake.landline_number))())


def global_v6(fake: Any) -> str:
    """faker draws from all of the space, of which addresses in use are an eighth."""
    while (address := ipaddress.ip_address(fake.ipv6())) not in ipaddress.ip_network("2000::/3"):
        pass
    return str(address)


def decoys(fake: Any) -> list[str]:
    number = fake.random_number
    return [
        f"ISBN {fake.isbn13()}",
        fake.date("%d-%m-%Y"),
        f"Rp {number(7, True):,}.000".replace(",", "."),
        "version " + ".".join(str(fake.random_int(0, most)) for most in (30, 30, 99, 9)),
        fake.ipv4_private(),
        fake.sha1(),
        fake.uuid4(),
        fake.ean13(),
        f"order no. {number(4, True)}-{number(4, True)}-{number(4, True)}",
        f"${number(3, True)}^{{{number(2, True)}}} + {number(10, True)} = {number(11, True)}$",
        f"{fake.random_int(0, 9)}.{number(15, True)}",
        f"{number(3, True)} {number(3, True)} {number(3, True)} {number(3, True)}",
        f"{number(4, True)}, {number(4, True)}, {number(4, True)}",
        f"{fake.latitude()}, {fake.longitude()}",
        str(fake.unix_time() // 1),
        f"@{fake.user_name()}",
    ]  # fmt: skip


def finder(name: str) -> Finder:
    if name == "datatrove":
        formatter = import_module("datatrove.pipeline.formatters.pii").PIIFormatter()
        return lambda text: [
            match.span()
            for replacer in (formatter.emails_replacer, formatter.ip_replacer)
            for match in replacer.regex.finditer(text)
            if replacer.validator is None or replacer.validator(match[0])
        ]
    if name == "scrubadub":
        scrubber = import_module("scrubadub").Scrubber()
        return lambda text: [(filth.beg, filth.end) for filth in scrubber.iter_filth(text)]
    tldextract: Any = import_module("tldextract")  # it would fetch a list from the net
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())
    package = import_module("presidio_analyzer.predefined_recognizers")
    recognizers = [
        getattr(package, f"{kind}Recognizer")(**({"supported_regions": REGIONS} if kind == "Phone" else {}))
        for kind in RECOGNIZERS
        if hasattr(package, f"{kind}Recognizer")
    ]
    return lambda text: [
        (found.start, found.end)
        for recognizer in recognizers
        for found in recognizer.analyze(text, recognizer.supported_entities, None)
        if found.score >= 0.4
    ]


def main() -> None:
    logging.disable(logging.CRITICAL)
    if len(sys.argv) == 1:
        print(json.dumps([name for name, package in PACKAGES.items() if find_spec(package)]))
        return
    if sys.argv[1] == "make":
        Path(sys.argv[4]).write_text(json.dumps(made(int(sys.argv[2]), int(sys.argv[3]))))
        return
    name, source, target = sys.argv[1:]
    find = finder(name)
    texts = json.loads(Path(source).read_text())
    find("warm up: ann@b.org, +6281234567890")
    spans, seconds = [], []
    for text in texts:
        began = time.process_time()
        spans.append(find(text))
        seconds.append(time.process_time() - began)
    Path(target).write_text(json.dumps({"seconds": seconds, "spans": spans}))


if __name__ == "__main__":
    main()
