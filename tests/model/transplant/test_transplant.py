"""Checkpoints with another tokenizer, judged by the old model, by transformers, and by least squares."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from foresail.cli import app
from foresail.model.attention import PackedAttention
from foresail.model.hf import build_model, load_model, save_model
from foresail.model.readouts import logits
from foresail.model.transplant.transplant import Making, transplant
from foresail.recipe.shape.hf_config import SpecialIds, read_special_ids
from foresail.recipe.shape.model_shape import ModelShape
from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

OLD_TEXTS = ["the cat sat on the mat with the hat", "that man and the other man", "12 and 345"] * 4
NEW_TEXTS = ["kucing itu duduk di atas tikar", "the cat and the other", "orang itu dan orang ini", "ที่นี่ดี"] * 4
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_layers": 2, "num_heads": 2, "num_kv_heads": 1}
TALK = [Message(role="user", content="the cat"), Message(role="assistant", content="sat")]


def chatml_tokenizer(texts=OLD_TEXTS, size=340):
    """As SmolLM2's: eos ends a turn, and turns are opened by <|im_start|>."""
    trained = train_bpe(
        texts, vocab_size=size, special_tokens=("<|im_start|>", "<|im_end|>"), chat_template=CHATML
    )
    config = {**trained.files.config, "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    return Tokenizer(replace(trained.files, config={**config, "pad_token": "<|im_end|>"}))


def new_tokenizer(folder, texts=NEW_TEXTS, size=330):
    train_bpe(texts, vocab_size=size, whole_tokens=("<think>",)).save(folder)
    return folder


def checkpoint(folder, tokenizer, *, dtype=torch.float32, pad=5, **shape):
    sizes = ModelShape(vocab_size=tokenizer.vocab_size + pad, head_dim=8, max_context=64, **SIZES | shape)
    model = build_model(sizes, seed=1, dtype=dtype)
    special = SpecialIds(bos=tokenizer.bos_id, eos=tokenizer.eos_ids, pad=tokenizer.pad_id)
    save_model(model, folder, special=special)
    tokenizer.save(folder)
    return folder


@torch.no_grad()
def logits_after(folder, text):
    """By id, behind the whole text."""
    model = load_model(folder, dtype=torch.float32, device="cpu")
    ids = torch.tensor(Tokenizer.load(folder).encode(text))
    attend = PackedAttention(torch.tensor([0, len(ids)]))
    return model(ids, torch.arange(len(ids)), attend, logits).value[-1]


def table(folder, name="model.embed_tokens.weight"):
    return load_file(folder / "model.safetensors")[name]


def shuffled(tokenizer, seed=0):
    """The same tokens under other ids."""
    definition = json.loads(tokenizer.files.definition)
    vocabulary = definition["model"]["vocab"]
    numbers = [*vocabulary.values()]
    random.Random(seed).shuffle(numbers)
    definition["model"]["vocab"] = dict(zip(vocabulary, numbers, strict=True))
    for added in definition["added_tokens"]:
        added["id"] = definition["model"]["vocab"][added["content"]]
    definition["added_tokens"].sort(key=lambda added: added["id"])
    return Tokenizer(replace(tokenizer.files, definition=json.dumps(definition)))


@pytest.mark.parametrize("shape", [{}, {"tied": False}, {"tied": False, "mtp": 1}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_tokens_under_other_ids_give_the_same_model(shape, dtype, tmp_path):
    old = chatml_tokenizer()
    source = checkpoint(tmp_path / "old", old, dtype=dtype, **shape)
    new = shuffled(old)
    new.save(tmp_path / "tok")
    report = transplant(source, tmp_path / "tok", tmp_path / "out", Making())
    assert (
        report.counts == {"copied": old.vocab_size, "roles": 0, "new": 0, "unknown": 0} and not report.notes
    )
    before, after = (logits_after(folder, "the cat sat") for folder in (source, tmp_path / "out"))
    places = [(number, new.token_id(token)) for token, number in old.vocabulary().items()]
    ours, theirs = zip(*places, strict=True)
    torch.testing.assert_close(before[[*ours]], after[[*theirs]])
    rest = load_file(source / "model.safetensors")
    for name, tensor in load_file(tmp_path / "out" / "model.safetensors").items():
        assert tensor.dtype == rest[name].dtype
        assert len(tensor) == old.vocab_size or torch.equal(tensor, rest[name])


@pytest.mark.parametrize("tied", [True, False])
def test_new_tokens_are_the_mean_of_the_old_pieces_of_their_bytes(tied, tmp_path):
    old = chatml_tokenizer()
    source = checkpoint(tmp_path / "old", old, tied=tied)
    report = transplant(source, new_tokenizer(tmp_path / "tok"), tmp_path / "out", Making(), pad_to=64)
    new = Tokenizer.load(tmp_path / "out")
    spelled, specials = new.token_bytes(), set(new.special_tokens())
    assert (
        report.rows == -(-new.vocab_size // 64) * 64
        and report.counts["copied"] > 256
        and report.counts["new"] > 20
    )
    for name in ["model.embed_tokens.weight"] + (["lm_head.weight"] if not tied else []):
        was, now = table(source, name), table(tmp_path / "out", name)
        for token, number in new.vocabulary().items():
            if token in specials:
                continue
            text = spelled[number].decode(errors="ignore")
            if text.encode() != spelled[number]:
                continue  # a part of a character: see the next test
            expected = (
                was[old.encode(text)].mean(0) if token not in old.vocabulary() else was[old.token_id(token)]
            )
            torch.testing.assert_close(now[number], expected, msg=token)
        torch.testing.assert_close(now[new.vocab_size :], was.mean(0).repeat(report.rows - new.vocab_size, 1))


def test_parts_of_characters_are_made_of_their_bytes(tmp_path):
    old = chatml_tokenizer()
    source = checkpoint(tmp_path / "old", old)
    transplant(source, new_tokenizer(tmp_path / "tok"), tmp_path / "out", Making())
    new = Tokenizer.load(tmp_path / "out")
    parts = [
        n for n, s in enumerate(new.token_bytes()) if len(s) > 1 and "\ufffd" in s.decode(errors="replace")
    ]
    assert parts
    one_byte = {s: n for n, s in enumerate(old.token_bytes()) if len(s) == 1}
    was, now = table(source), table(tmp_path / "out")
    for number in parts:
        pieces = [one_byte[bytes([byte])] for byte in new.token_bytes()[number]]
        torch.testing.assert_close(now[number], was[pieces].mean(0))


def test_special_tokens_take_the_vectors_of_those_that_do_the_same(tmp_path):
    old = chatml_tokenizer()
    source = checkpoint(tmp_path / "old", old)
    trained = train_bpe(NEW_TEXTS, vocab_size=330)
    definition = trained.files.definition
    for was, now in (("<|end|>", "<|stop|>"), ("<|user|>", "<|ask|>"), ("<|assistant|>", "<|say|>")):
        definition = definition.replace(was, now)
    template = (
        "{% for m in messages %}{{ ('<|ask|>' if m.role == 'user' else '<|say|>') + m.content + eos_token }}"
    )
    template += "{% endfor %}{% if add_generation_prompt %}<|say|>{% endif %}"
    config = {**trained.files.config, "eos_token": "<|stop|>", "pad_token": "<|stop|>"}
    Tokenizer(replace(trained.files, definition=definition, config=config, chat_template=template)).save(
        tmp_path / "tok"
    )
    transplant(source, tmp_path / "tok", tmp_path / "out", Making())
    new, was, now = Tokenizer.load(tmp_path / "out"), table(source), table(tmp_path / "out")
    assert torch.equal(now[new.token_id("<|stop|>")], was[old.token_id("<|im_end|>")])
    for token, text in (("<|ask|>", "<|im_start|>user\n"), ("<|say|>", "<|im_start|>assistant\n")):
        torch.testing.assert_close(now[new.token_id(token)], was[old.encode(text)].mean(0))
    assert new.encode_prompt(TALK[:1])[-1] == new.token_id("<|say|>")


def test_the_old_template_comes_along_with_its_tokens_and_ids_are_the_new_ones(tmp_path):
    old = chatml_tokenizer()
    files = replace(
        old.files, generation={"temperature": 0.6, "decoder_start_token_id": 3, "suppress_tokens": [9]}
    )
    source = checkpoint(tmp_path / "old", Tokenizer(files))
    report = transplant(source, new_tokenizer(tmp_path / "tok"), tmp_path / "out", Making(), template="old")
    assert [note for note in report.notes if "added to the tokenizer: <|im_start|>, <|im_end|>" in note]
    new, out = Tokenizer.load(tmp_path / "out"), tmp_path / "out"
    assert new.chat.render(TALK, add_generation_prompt=True) == old.chat.render(
        TALK, add_generation_prompt=True
    )
    generation = json.loads((out / "generation_config.json").read_text())
    assert generation["temperature"] == 0.6 and not {"decoder_start_token_id", "suppress_tokens"} & {
        *generation
    }
    ids = read_special_ids(out)
    assert ids.eos == (new.token_id("<|end|>"), new.token_id("<|im_end|>")) == new.eos_ids
    assert ids.bos == new.token_id("<|im_start|>") and ids.pad == new.token_id("<|end|>")
    for token in ("<|im_start|>", "<|im_end|>"):
        assert torch.equal(table(out)[new.token_id(token)], table(source)[old.token_id(token)])


@pytest.mark.parametrize("method", ["mean", "random"])
def test_transformers_loads_the_result_and_agrees(method, tmp_path):
    source = checkpoint(tmp_path / "old", chatml_tokenizer(), tied=False)
    transplant(source, new_tokenizer(tmp_path / "tok"), tmp_path / "out", Making(method=method))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    text = "kucing <think> the cat 12 ที่"
    ids = tokenizer.encode(text)
    assert ids == Tokenizer.load(tmp_path / "out").encode(text)
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits[0, -1]
    torch.testing.assert_close(logits_after(tmp_path / "out", text), expected, atol=1e-4, rtol=0)
    assert theirs.config.eos_token_id == tokenizer.eos_token_id == theirs.generation_config.eos_token_id[0]


def test_a_donor_whose_new_vectors_are_sums_of_shared_ones_hands_on_these_sums(tmp_path):
    old = chatml_tokenizer()
    source = checkpoint(tmp_path / "old", old, tied=False)
    folder = new_tokenizer(tmp_path / "tok")
    new = Tokenizer.load(folder)
    checkpoint(tmp_path / "donor", new, tied=False, hidden_size=64, num_heads=8, pad=0)
    shared = [
        (number, old.token_id(token)) for token, number in new.vocabulary().items() if old.token_id(token)
    ]
    shared = [pair for pair in shared if pair[0] > 20]
    donor = load_model(tmp_path / "donor", dtype=torch.float32, device="cpu")
    target, parts = new.token_id("Ġitu"), random.Random(3).sample(shared, 3)
    assert old.token_id("Ġitu") is None
    factors = torch.tensor([0.5, -1.5, 2.0])
    for weight in (donor.embed.weight, donor.head.weight):
        weight.data[target] = factors @ weight.data[[number for number, _ in parts]]
    save_model(donor, tmp_path / "donor2")
    new.save(tmp_path / "donor2")
    making = Making(method="omp", donor=tmp_path / "donor2", count=3)
    transplant(source, folder, tmp_path / "out", making)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        expected = factors @ table(source, name)[[number for _, number in parts]]
        torch.testing.assert_close(table(tmp_path / "out", name)[target], expected, atol=1e-4, rtol=1e-4)


def test_texts_serve_where_there_is_no_donor(tmp_path):
    source = checkpoint(tmp_path / "old", chatml_tokenizer())
    folder = new_tokenizer(tmp_path / "tok")
    making = Making(method="omp", texts=[*NEW_TEXTS * 20, "\ud800 half"], count=4, width=16)
    report = transplant(source, folder, tmp_path / "out", making)
    transplant(source, folder, tmp_path / "mean", Making())
    new = Tokenizer.load(tmp_path / "out")
    assert report.counts["new"] > 20 and torch.isfinite(table(tmp_path / "out")).all()
    changed = (table(tmp_path / "out") != table(tmp_path / "mean")).any(dim=1)
    assert changed[new.token_id("Ġitu")] and not changed[new.token_id("<think>")] and not changed[:256].any()


def test_other_cuts_of_numbers_are_named(tmp_path):
    old = chatml_tokenizer()
    source = checkpoint(tmp_path / "old", old)
    new = train_bpe(["20 204 2048 20481 365"] * 9, vocab_size=300)
    definition = json.loads(new.files.definition)
    definition["pre_tokenizer"]["pretokenizers"].pop(0)
    definition["model"]["vocab"]["20"] = 300
    definition["model"]["merges"] = [["2", "0"]]
    Tokenizer(replace(new.files, definition=json.dumps(definition))).save(tmp_path / "tok")
    report = transplant(source, tmp_path / "tok", tmp_path / "out", Making())
    assert "2048 is 2 0 4 8 in the old tokenizer and 20 4 8 in the new one" in report.notes[0]


@pytest.mark.parametrize(
    ("making", "options", "message"),
    [
        ({"method": "best"}, {}, "use one of mean, omp, random"),
        ({"method": "omp"}, {}, "needs one of: --donor"),
        ({"method": "mean", "texts": ["a"]}, {}, "mean has no use for them"),
        ({"method": "omp", "texts": []}, {}, "holds no text"),
        ({"method": "omp", "texts": ["a"], "count": 0}, {}, "one token or more"),
        ({"method": "omp", "donor": "old"}, {}, "has another tokenizer than the new one: id"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(making, options, message, tmp_path):
    source = checkpoint(tmp_path / "old", chatml_tokenizer())
    if "donor" in making:
        making = making | {"donor": tmp_path / making["donor"]}
    with pytest.raises(ValueError, match=message):
        transplant(source, new_tokenizer(tmp_path / "tok"), tmp_path / "out", Making(**making), **options)
    assert not (tmp_path / "out").exists()


def test_templates_that_are_missing_are_named(tmp_path):
    old, new = chatml_tokenizer(), train_bpe(NEW_TEXTS, vocab_size=330)
    bare = checkpoint(tmp_path / "bare", Tokenizer(replace(old.files, chat_template=None)))
    Tokenizer(replace(new.files, chat_template=None)).save(tmp_path / "tok")
    for template in ("old", "new"):
        with pytest.raises(ValueError, match=f"--chat-template {'new' if template == 'old' else 'old'}"):
            transplant(bare, tmp_path / "tok", tmp_path / "out", Making(), template=template)
    transplant(bare, tmp_path / "tok", tmp_path / "out", Making())
    assert Tokenizer.load(tmp_path / "out").chat is None


def test_the_command_says_what_became_of_the_tokens(tmp_path):
    source = checkpoint(tmp_path / "old", chatml_tokenizer())
    (tmp_path / "a.txt").write_text("\n".join(NEW_TEXTS * 20))
    names = [str(source), str(new_tokenizer(tmp_path / "tok")), str(tmp_path / "out")]
    options = ["--method", "omp", "--text", str(tmp_path / "a.txt"), "--atoms", "4", "--pad-to", "64"]
    done = CliRunner().invoke(app, ["tokenizer", "transplant", *names, *options, "--chat-template", "old"])
    assert done.exit_code == 0, done.output
    assert "320 rows; 2" in done.output and "new ones by omp" in done.output
    assert "note: added to the tokenizer: <|im_start|>, <|im_end|>" in done.output
    assert len(table(tmp_path / "out")) == 320
