"""Reading and writing Hugging Face tokenizer directories."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

CHAT = [Message(role="user", content="2+2"), Message(role="assistant", content="4")]


def small() -> Tokenizer:
    return train_bpe(["two and two is four, 2+2=4"] * 5, vocab_size=280, special_tokens=["<|eot|>"])


def edit(path: Path, **changes: object) -> None:
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**content, **changes}))


def test_save_then_load_is_the_same_tokenizer(tmp_path: Path) -> None:
    small().save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.files.definition == small().files.definition
    assert loaded.encode_conversation(CHAT) == small().encode_conversation(CHAT)
    assert (loaded.eos_ids, loaded.pad_id, loaded.vocab_size) == (
        small().eos_ids,
        small().pad_id,
        small().vocab_size,
    )


def test_transformers_reads_what_we_save(tmp_path: Path) -> None:
    small().save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    turns = [{"role": message.role, "content": message.content} for message in CHAT]
    assert theirs.apply_chat_template(turns)["input_ids"] == small().encode_conversation(CHAT)[0]
    assert theirs.eos_token_id == small().eos_ids[0]
    assert len(theirs) == small().vocab_size


def test_special_tokens_as_text_or_record(tmp_path: Path) -> None:
    small().save(tmp_path)
    edit(
        tmp_path / "tokenizer_config.json", eos_token={"content": "<|eot|>", "special": True}, pad_token=None
    )
    (tmp_path / "generation_config.json").unlink()
    loaded = Tokenizer.load(tmp_path)
    assert loaded.decode(loaded.eos_ids) == "<|eot|>"
    assert loaded.pad_id == loaded.eos_ids[0]


def test_eos_ids_come_from_all_files_without_repeats(tmp_path: Path) -> None:
    small().save(tmp_path)
    eot = small().encode("<|eot|>")[0]
    edit(tmp_path / "generation_config.json", eos_token_id=[eot, 99_999], temperature=0.6)
    edit(tmp_path / "config.json", eos_token_id=0)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.eos_ids == (0, eot)
    loaded.save(tmp_path / "again")
    assert Tokenizer.load(tmp_path / "again").eos_ids == (0, eot)
    assert json.loads((tmp_path / "again" / "generation_config.json").read_text())["temperature"] == 0.6


def test_template_from_jinja_file_wins_and_survives_saving(tmp_path: Path) -> None:
    small().save(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("other{{ messages[0].content }}")
    loaded = Tokenizer.load(tmp_path)
    assert loaded.decode(loaded.encode_prompt(CHAT[:1])) == "other2+2"
    loaded.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.decode(loaded.encode_prompt(CHAT[:1])) == "other2+2"


def test_named_templates_use_the_default(tmp_path: Path) -> None:
    small().save(tmp_path)
    named = [{"name": "rag", "template": "no"}, {"name": "default", "template": "yes"}]
    edit(tmp_path / "tokenizer_config.json", chat_template=named)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.decode(loaded.encode_prompt(CHAT[:1])) == "yes"
    edit(tmp_path / "tokenizer_config.json", chat_template=named[:1])
    with pytest.raises(ValueError, match=r"\['rag'\] but none named 'default'"):
        Tokenizer.load(tmp_path)


def test_truncation_in_the_file_is_switched_off(tmp_path: Path) -> None:
    small().save(tmp_path)
    cut = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    edit(tmp_path / "tokenizer.json", truncation=cut)
    assert Tokenizer.load(tmp_path).decode(Tokenizer.load(tmp_path).encode("1234567")) == "1234567"


def test_missing_files_say_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        Tokenizer.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.model").touch()
    with pytest.raises(FileNotFoundError, match="convert it once"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", b'{"model": ', r"tokenizer\.json is not a tokenizer definition"),
        ("tokenizer.json", b"\xff\xfe", "is not UTF-8"),
        ("tokenizer_config.json", b"{", r"tokenizer_config\.json is not valid JSON"),
        ("generation_config.json", b"[]", "holds no JSON object"),
        (
            "tokenizer_config.json",
            b'{"eos_token": "</s>"}',
            "names '</s>', which tokenizer.json does not hold",
        ),
        ("tokenizer_config.json", b'{"chat_template": "{% if %}"}', "not valid Jinja"),
    ],
)
def test_corrupt_files_name_the_file(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    small().save(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        Tokenizer.load(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    small().save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "generation_config.json").unlink()
    with pytest.raises(ValueError, match=r"set eos_token in tokenizer_config\.json"):
        Tokenizer.load(tmp_path)
