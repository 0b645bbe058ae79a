"""The shipped model on sentences of every language, the step's verdicts, training, hostile texts."""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path

import pytest

from foresail.curate.document import Document, Drop
from foresail.curate.language.model import SHIPPED, load_model
from foresail.curate.language.sentences import split_sentences
from foresail.curate.language.step import Language
from foresail.curate.language.train import Fit, accuracy, hold_out, read_examples, train

UDHR = Path(__file__).parents[4] / "shared/data/text/heldout_udhr"

# written here: every language says that the weather is good and that the children go to the school by the river
SENTENCES = {
    "en": "The weather is fine today and the children walk to the school by the river.",
    "id": "Cuaca hari ini cerah karena musim hujan sudah usai, jadi anak-anak bisa berjalan kaki ke sekolah.",
    "ms": "Cuaca hari ini baik kerana musim hujan telah berakhir, oleh itu kanak-kanak boleh berjalan ke sekolah.",
    "th": "วันนี้อากาศดี เด็กๆ เดินไปโรงเรียนที่อยู่ริมแม่น้ำ",
    "vi": "Hôm nay trời đẹp và các em nhỏ đi bộ đến trường bên bờ sông.",
    "tl": "Maganda ang panahon ngayon at naglalakad ang mga bata papunta sa paaralan sa tabi ng ilog.",
    "pt": "O tempo está bom hoje e as crianças caminham até a escola à beira do rio.",
    "zh": "今天天气很好，孩子们沿着河边走路去学校。",
    "de": "Das Wetter ist heute schön, und die Kinder gehen zu Fuß zur Schule am Fluss.",
    "fr": "Il fait beau aujourd'hui et les enfants vont à pied à l'école près de la rivière.",
    "es": "Hoy hace buen tiempo y los niños van andando a la escuela junto al río.",
    "it": "Oggi il tempo è bello e i bambini vanno a piedi alla scuola vicino al fiume.",
    "nl": "Het weer is vandaag mooi en de kinderen lopen naar de school bij de rivier.",
    "pl": "Dzisiaj jest ładna pogoda i dzieci idą pieszo do szkoły nad rzeką.",
    "cs": "Dnes je hezké počasí a děti jdou pěšky do školy u řeky.",
    "ro": "Astăzi vremea este frumoasă și copiii merg pe jos la școala de lângă râu.",
    "hu": "Ma szép az idő, és a gyerekek gyalog mennek a folyó melletti iskolába.",
}
OTHERS = (
    "Vädret är fint idag och barnen går till skolan vid floden.",
    "Сегодня хорошая погода, и дети идут пешком в школу у реки.",
    "今日は天気が良く、子供たちは川のそばの学校まで歩いて行きます。",
    "오늘은 날씨가 좋아서 아이들이 강가의 학교까지 걸어갑니다.",
    "Bugün hava güzel ve çocuklar nehrin kıyısındaki okula yürüyor.",
    "الطقس جميل اليوم والأطفال يمشون إلى المدرسة بجانب النهر.",
)


def curated(text: str, **settings: object) -> Document | Drop:
    outcome = Language(**settings).open()(Document(id="1", text=text))
    assert isinstance(outcome, Document | Drop)
    return outcome


def language_of(text: str, **settings: object) -> object:
    outcome = curated(text, **settings)
    assert isinstance(outcome, Document)
    return outcome.metadata["language"]


@pytest.mark.parametrize("language", SENTENCES)
def test_sentence_of_each_language(language: str) -> None:
    sentence = SENTENCES[language]
    assert language_of(sentence) == language
    assert language_of(sentence.upper()) == language
    assert language_of(unicodedata.normalize("NFD", sentence)) == language


def test_model_is_small_and_knows_seventeen_languages() -> None:
    assert SHIPPED.stat().st_size <= 3_000_000
    assert set(load_model().languages) == set(SENTENCES)


@pytest.mark.parametrize("text", OTHERS)
def test_unknown_language_is_other_or_undecided(text: str) -> None:
    assert language_of(text) in ("other", "undecided")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12 345 — 67!",
        "\0\0\0",
        "\ud800\udc00\udfff",
        "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }\nreturn sum;",
        "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhpcyByZWFzb24sIGJ1dCBieSB0aGlz",
        "e4d909c290d0fb1ca068ffaddf22cbd0 5d41402abc4b2a76b9719d911017c592",
    ],
)
def test_no_language_is_undecided(text: str) -> None:
    assert language_of(text) == "undecided"


def test_random_bytes_are_no_known_language() -> None:
    chance = random.Random(0)
    texts = [chance.randbytes(200).decode("latin-1") for _ in range(100)]
    known = sum(language_of(text) not in ("other", "undecided") for text in texts)
    assert known <= 5


def test_thai_with_english_names_is_thai() -> None:
    assert language_of("คณะผู้แทนไทยเข้าร่วมการประชุม Council on General Affairs and Policy ประจำปี") == "th"


@pytest.mark.skipif(not UDHR.is_dir(), reason="../shared/data is not here")
def test_bar_on_documents_of_another_domain() -> None:
    """Ten lines a document. Sentences: benchmarks/curate/language.py."""
    right: dict[str, list[bool]] = {}
    for language in SENTENCES:
        lines = [line for line in (UDHR / f"{language}.txt").read_text().splitlines() if len(line) > 20]
        for start in range(0, len(lines) - 9, 10):
            guess = load_model().guess("\n".join(lines[start : start + 10]))
            right.setdefault(language, []).append(guess.best == language)
    shares = {language: sum(found) / len(found) for language, found in right.items()}
    assert sum(shares.values()) / len(shares) >= 0.97, shares


def test_kept_languages_and_reasons() -> None:
    assert isinstance(curated(SENTENCES["ms"], keep=["id", "ms"]), Document)
    drop = curated(SENTENCES["fr"], keep=["id", "ms"])
    assert isinstance(drop, Drop) and drop.reason == "language" and drop.detail.startswith("fr ")
    drop = curated("x = y + 1", keep=["en"])
    assert isinstance(drop, Drop) and drop.reason == "undecided"
    drop = curated(SENTENCES["fr"], confidence=1.0)
    assert isinstance(drop, Drop) and drop.reason == "confidence"


def test_wide_margin_names_the_candidates() -> None:
    outcome = curated("Saya makan nasi.", margin=1.0)
    assert isinstance(outcome, Document)
    assert outcome.metadata["language"] == "undecided"
    assert set(outcome.metadata["language_candidates"]) == {"id", "ms"}
    assert isinstance(curated("Saya makan nasi.", margin=1.0, keep=["ms"], keep_undecided=True), Document)


def test_foreign_paragraphs_are_cut_and_code_stays() -> None:
    code = "```\nfor (int i = 0; i < n; ++i) { sum += a[i]; }\n\nwhile (true) { n = n / 2; }\n```"
    text = "\n\n".join([SENTENCES["id"], SENTENCES["de"], code, "OK", SENTENCES["id"]])
    outcome = curated(text, keep=["id"], foreign_paragraphs="cut")
    assert isinstance(outcome, Document)
    assert outcome.text == "\n\n".join([SENTENCES["id"], code, "OK", SENTENCES["id"]])
    assert outcome.metadata["foreign_paragraphs"] == 1


def test_shares_by_sentence() -> None:
    outcome = curated(f"{SENTENCES['en']} {SENTENCES['de']}", shares=True)
    assert isinstance(outcome, Document)
    assert set(outcome.metadata["language_shares"]) == {"de", "en"}
    assert sum(outcome.metadata["language_shares"].values()) == pytest.approx(1, abs=1e-3)


def test_sentences_lose_nothing() -> None:
    assert split_sentences("Ya. Tidak? 好的。好。\nv1.2 end") == [
        "Ya.",
        "Tidak?",
        "好的。",
        "好。",
        "v1.2 end",
    ]
    chance = random.Random(1)
    for _ in range(300):
        text = "".join(chance.choice("ab .!?。\n\"'") for _ in range(40))
        assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_hostile_texts_have_a_language_or_none() -> None:
    hostile = (
        "a" * 1_000_000,
        "\u0301\u0316" * 200_000,
        "e" + "\u0301\u0316" * 100_000,
        "ا" * 100_000 + "\0" * 100_000,
        "İ" * 100_000,
        "." * 300_000,
        "\ud800" * 100_000,
    )
    for text in hostile:
        assert language_of(text, shares=True)


def test_chunks_of_a_long_text_agree_with_the_whole() -> None:
    guess = load_model().guess(SENTENCES["hu"] * 3000)
    assert guess.best == "hu" and guess.confidence > 0.999


def write_rows(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("".join(json.dumps({"text": text, "src": source}) + "\n" for text, source in rows))
    return path


def test_training_learns_a_source_it_has_not_seen(tmp_path: Path) -> None:
    words = {"xa": "kala mana tuso rimo welu".split(), "xb": "brot stulk grent wisp krand".split()}
    chance = random.Random(0)
    files = [
        write_rows(
            tmp_path / f"{language}.jsonl",
            [(" ".join(chance.choices(known, k=6)), f"source{n % 3}") for n in range(120)],
        )
        for language, known in words.items()
    ]
    learned, held_out = hold_out(read_examples(files), ["source2"])
    assert {example.source for example in learned} == {"source0", "source1"}
    fit = Fit(bits=12, passes=2, examples=100)
    model = train(learned, fit, note=str)
    assert accuracy(model, held_out) == {"xa": 1.0, "xb": 1.0}
    model.save(tmp_path / "one.npz")
    assert load_model(tmp_path / "one.npz").guess("tuso mana").best == "xa"
    again = train(learned, fit, note=str)
    assert (again.weights == model.weights).all()
    assert language_of("rimo welu kala", model=str(tmp_path / "one.npz")) == "xa"


def test_mistakes_are_explained(tmp_path: Path) -> None:
    bad = tmp_path / "id.jsonl"
    bad.write_text('{"body": 1}\n')
    with pytest.raises(ValueError, match='there is no "text"'):
        read_examples([bad])
    with pytest.raises(ValueError, match="one class is not enough"):
        train(read_examples([write_rows(tmp_path / "id.jsonl", [("satu dua tiga", "a")])]), Fit())
    with pytest.raises(ValueError, match="no language model"):
        load_model(bad)


def test_fasttext_model_is_missing_or_its_package(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"fasttext-predict|there is no model"):
        Language(model=str(tmp_path / "lid.176.bin")).open()
