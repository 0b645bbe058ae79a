"""Tokenizers of several groups: exact sizes, no unreachable token, exact round trips, and an independent BPE."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.commands.tokenizer import group_texts
from foresail.recipe.reading.load import RecipeError, load_table
from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.training.build import Trained, build
from foresail.tokenizer.training.groups import interleave, repeat
from foresail.tokenizer.training.merges import encode_slowly, every_split, merge_ranks
from foresail.tokenizer.training.pattern import PLAIN_WORDS, WORDS, cut_by
from foresail.tokenizer.training.pieces import Pieces, frequent_characters, train_pieces
from foresail.tokenizer.training.reachable import unreached
from foresail.tokenizer.training.recipe import Group, Superwords, TokenizerRecipe
from foresail.tokenizer.training.vocabulary import fill, spell

WORDS_OF = {
    "latin": "the tall ship sails the sea and a mast sways kapal berlayar di laut dengan angin código".split(),
    "thai": "เรือ ที่นี่ แล่น ทะเล น้ำ ใหญ่ กำลัง ลม".split(),
    "chinese": list("船在海上航行風很大水手們唱歌"),
}


def made_texts(group: str, count: int = 300) -> list[str]:
    random, words = Random(group), WORDS_OF[group]
    blank = " " if group == "latin" else ""
    return [
        blank.join(random.choices(words, k=random.randint(3, 12)))
        + random.choice([".", "!\n", " (1999)", "\n\n"])
        for _ in range(count)
    ]


def recipe(**changes: object) -> TokenizerRecipe:
    groups = [{"name": name, "files": [name], "vocab_size": 100} for name in WORDS_OF]
    return TokenizerRecipe.model_validate({"out": "-", "vocab_size": 448, "group": groups, **changes})


@cache
def trained(**changes: object) -> Trained:
    return build(recipe(**changes), lambda group: made_texts(group.name))


def core(**changes: object) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(trained(**changes).tokenizer.files.definition)


# Sizes and reachability.


@pytest.mark.parametrize("training", ["merged", "joint"])
def test_the_vocabulary_has_the_exact_size_and_every_token_is_reached(training: str) -> None:
    made = trained(training=training)
    assert made.tokenizer.vocab_size == 448 == len(made.tokenizer.vocabulary())
    assert sorted(made.tokenizer.vocabulary().values()) == [*range(448)]
    assert unreached(core(training=training), made.vocabulary.tokens) == {}


def test_the_size_is_rounded_down_to_a_multiple() -> None:
    assert trained(vocab_size=450, multiple_of=64).tokenizer.vocab_size == 448


def test_the_same_texts_make_the_same_tokenizer() -> None:
    again = build(recipe(), lambda group: made_texts(group.name))
    assert again.tokenizer.files == trained().tokenizer.files


def test_every_group_brings_pieces_of_its_own() -> None:
    tokens = {token.decode(errors="ignore") for token in trained().vocabulary.tokens}
    assert tokens >= {" the", "ที่นี่"} and min(trained().pieces.values()) > 5
    assert any(len(token) > 1 and token in "".join(made_texts("chinese")) for token in tokens)


def test_no_token_is_longer_than_the_limit_or_ends_inside_a_character_of_another() -> None:
    for token in trained(max_piece_characters=4).vocabulary.tokens:
        assert len(token.decode(errors="ignore")) <= 4
        whole = token.decode(errors="ignore").encode()
        assert whole in (b"", token)


def test_digits_are_tokens_of_their_own() -> None:
    tokenizer = trained().tokenizer
    assert [tokenizer.decode([number]) for number in tokenizer.encode("1999")] == [*"1999"]


def test_too_little_text_says_so() -> None:
    with pytest.raises(
        ValueError, match=r"the texts give [\d,]+ tokens, 4,085 are asked for; give more text"
    ):
        build(recipe(vocab_size=4094), lambda group: made_texts(group.name))
    with pytest.raises(ValueError, match="characters do not fit into 251 tokens; raise vocab_size"):
        build(recipe(vocab_size=260), lambda group: made_texts(group.name))


# Round trips.


SCRIPTS = (
    "aé ñß ก็ท กำ 船 हि क् ع‌ب א ᠮ 한 Ω Ж ა አ 👩‍🚀 🏳️‍🌈 \x00 \x7f \u200d \ufeff \U0010ffff \r\n \t\x0b 1٣๓ ½"
)


def hostile_texts(seed: int) -> Iterator[str]:
    """Characters of all planes, and real texts with characters replaced, doubled and left out."""
    random = Random(seed)
    real = [*made_texts("latin", 5), *made_texts("thai", 5), *made_texts("chinese", 5), SCRIPTS]
    for _ in range(150):
        characters = [
            chr(
                random.choice(
                    [random.randrange(0x250), random.randrange(0xD800), random.randrange(0xE000, 0x110000)]
                )
            )
            for _ in range(random.randrange(20))
        ]
        yield "".join(characters)
        text = list(random.choice(real))
        for _ in range(random.randrange(5)):
            place = random.randrange(len(text))
            text[place : place + random.randrange(2)] = random.choice(
                [[], characters[:2], text[:3], [*" \n"]]
            )
            text = text or ["a"]
        yield "".join(text)


@pytest.mark.parametrize("seed", range(3))
def test_every_text_survives_and_is_encoded_as_by_an_independent_bpe(seed: int) -> None:
    made, encoder = trained(), core()
    ranks = merge_ranks(every_split(made.vocabulary.tokens))
    ids = {token: number for number, token in enumerate(made.vocabulary.tokens)}
    for text in hostile_texts(seed):
        encoding = encoder.encode(text)
        assert encoder.decode(encoding.ids) == text
        assert all(0 <= number < 448 for number in encoding.ids)
        parts = [part.encode() for part, _ in cut_by(WORDS).pre_tokenize_str(text)]
        slow = [
            ids[token] for part in parts for token in ([part] if part in ids else encode_slowly(part, ranks))
        ]
        assert slow == encoding.ids


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_every_text_of_a_search_survives(text: str) -> None:
    tokenizer = trained().tokenizer
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_are_no_text_survive_as_tokens(seed: int) -> None:
    random, made = Random(seed), trained()
    ranks, spelled = merge_ranks(every_split(made.vocabulary.tokens)), made.tokenizer.token_bytes()
    for _ in range(50):
        data = random.randbytes(random.randrange(30)) + SCRIPTS.encode()[random.randrange(40) :][:-1]
        ids = [made.vocabulary.tokens.index(token) for token in encode_slowly(data, ranks)]
        assert b"".join(spelled[number] for number in ids) == data


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_candidates_fills_a_vocabulary_of_reachable_tokens(seed: int) -> None:
    """Orders of merges that no training makes."""
    candidates = [
        *train_pieces(made_texts("latin"), size=500).merged,
        *train_pieces(made_texts("thai"), size=400).merged,
    ]
    Random(seed).shuffle(candidates)
    made = fill(candidates, base=spell("กา"), size=290 + 4 * seed, pattern=WORDS)
    from foresail.tokenizer.training.definition import write_definition

    encoder = tokenizers.Tokenizer.from_str(write_definition(made.tokens, WORDS))
    assert len(made.tokens) == encoder.get_vocab_size() == 290 + 4 * seed
    assert unreached(encoder, made.tokens) == {}
    for text in hostile_texts(seed):
        assert encoder.decode(encoder.encode(text).ids) == text


def test_a_piece_that_the_pattern_cuts_is_left_out_and_another_takes_its_place() -> None:
    made = fill(["a 1", "ab", "abc"], base=spell(""), size=258, pattern=WORDS)
    assert made.tokens[256:] == (b"ab", b"abc") and made.left_out == ("a 1",)


# Marks.


@pytest.mark.parametrize(
    "text", ["ที่นี่น้ำใหญ่", "हिन्दी", "tiê\u0301ng", unicodedata.normalize("NFD", "tiếng"), "العَرَبِيَّة"]
)
def test_marks_stay_with_their_letters(text: str) -> None:
    for pattern in (WORDS, PLAIN_WORDS):
        assert [part for part, _ in cut_by(pattern).pre_tokenize_str(text)] == [text]


def test_the_plain_pattern_cuts_ascii_as_gpt2s_does() -> None:
    from tokenizers import pre_tokenizers

    gpt2 = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=False)])
    random = Random(0)
    for _ in range(300):
        text = "".join(chr(random.choice([random.randrange(128), *b" '\n sta1"])) for _ in range(12))
        spans = [span for _, span in gpt2.pre_tokenize_str(text)]
        assert [span for _, span in cut_by(PLAIN_WORDS).pre_tokenize_str(text)] == spans


# Files and chat.


@pytest.mark.parametrize("chat", ["hybrid", "hybrid-short", "none"])
def test_saved_tokenizers_load_everywhere(tmp_path: Path, chat: str) -> None:
    made = trained(chat=chat).tokenizer
    made.save(tmp_path)
    text = "<think>the sea</think> ทะเล 12"
    ours, theirs = Tokenizer.load(tmp_path), tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert ours.files.definition == made.files.definition
    assert ours.encode(text) == theirs.encode(text).ids == made.encode(text)
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert fast.encode(text, add_special_tokens=False) == ours.encode(text)
    assert fast.decode(ours.encode(text)) == text and len(fast) == ours.vocab_size
    if chat != "none":
        messages = [Message(role="user", content="sail?"), Message(role="assistant", content="the sea")]
        ids, mask = ours.encode_conversation(messages)
        learnt = [number for number, learns in zip(ids, mask, strict=True) if learns]
        assert ours.decode(learnt[:-1]).endswith("</think>\n\nthe sea") and learnt[-1] in ours.eos_ids


def test_special_texts_in_the_corpus_make_no_pieces() -> None:
    texts = ["<|im_end|><tool_call>the sea" for _ in range(300)]
    made = build(recipe(), lambda group: texts + made_texts(group.name))
    assert all(b"tool" not in token and b"im_" not in token for token in made.vocabulary.tokens)


def test_half_characters_in_the_corpus_do_no_harm() -> None:
    made = build(recipe(), lambda group: [*made_texts(group.name), "a\ud83d b", "\udc00"])
    assert made.tokenizer.vocab_size == 448


# Parts.


def test_files_of_a_group_count_by_their_weights(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"text": "{name}{n}"}}\n' for n in range(4)))
    files = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.*")]
    group = Group(name="x", files=tuple(files), vocab_size=1, weights=(2, 0.5))
    assert [*group_texts(group)] == ["a0", "a0", "a1", "a1", "a2", "a2", "a3", "a3", "b1", "b3"]


def test_every_split_by_rank() -> None:
    tokens = [b"a", b"b", b"c", b"ab", b"bc", b"abc"]
    assert every_split(tokens) == [(b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"ab", b"c")]


def test_shares_interleave_groups() -> None:
    groups = [Pieces(characters=(), merged=("ab", "cd", "ef")), Pieces(characters=(), merged=("cd", "xy"))]
    assert interleave(groups, [3, 1]) == ["ab", "cd", "ef", "xy"]
    assert interleave(groups, [1, 3]) == ["cd", "xy", "ab", "ef"]


def test_frequent_characters_and_weights() -> None:
    assert frequent_characters(["aaab"], 0.75) == ["a"] and frequent_characters(["aaab"], 0.76) == ["a", "b"]
    assert [*repeat("abcd", 0.5)] == ["b", "d"] and [*repeat("ab", 1.5)] == ["a", "b", "b"]


def test_recipes_say_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text('out = "a"\nvocab_size = 1000\n')
    with pytest.raises(RecipeError, match="group is missing"):
        load_table(file, [], TokenizerRecipe)
    group = '[[group]]\nname = "a"\nfiles = ["a.txt"]\nvocab_size = 10\n'
    file.write_text(f'out = "a"\n{group}{group}')
    with pytest.raises(RecipeError, match="'a' is there twice"):
        load_table(file, [], TokenizerRecipe)
    file.write_text(f'out = "a"\ntrainin = "joint"\n{group}')
    with pytest.raises(RecipeError, match="trainin: unknown key; the nearest is training"):
        load_table(file, [], TokenizerRecipe)
    file.write_text(f'out = "a"\n{group}weights = [1, 2]\n')
    with pytest.raises(RecipeError, match="'a' has 1 files and 2 weights; give one for each"):
        load_table(file, [], TokenizerRecipe)


def test_the_page_names_each_key() -> None:
    page = (Path(__file__).parents[3] / "docs/tokenizer.md").read_text()
    keys = [*TokenizerRecipe.model_fields, *(f"group.{name}" for name in Group.model_fields)]
    keys += [f"superwords.{name}" for name in Superwords.model_fields]
    assert [key for key in keys if key not in ("group", "superwords") and f"| `{key}` |" not in page] == []


def test_shipped_recipes_are_sound() -> None:
    for file in (Path(__file__).parents[3] / "recipes" / "tokenizer").glob("*.toml"):
        assert load_table(file, [], TokenizerRecipe).size <= 65_536
