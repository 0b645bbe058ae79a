"""Rotary positions beyond the original context, by transformers' logits: read, computed, saved and lengthened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import LLAMA3_ROPE, SIZES, packed_logits, random_ids, scramble
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, load_model, save_model
from foresail.model.rotary import rotary_frequencies, rotary_table
from foresail.model.rotary_base import set_rotary
from foresail.recipe.shape.hf_config import config_from_shape, read_shape, shape_from_config
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.shape.rope import RopeScaling

ORIGINAL, LONG = 32, 128
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": ORIGINAL}
UNEVEN = {"beta_fast": 6, "beta_slow": 0.5, "truncate": False}
ROPES: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "yarn": YARN,
    "yarn, uneven": YARN | UNEVEN | {"factor": 4.5, "attention_factor": 1.4},
    "yarn, by mscale": YARN | {"mscale": 1.2, "mscale_all_dim": 0.6},
    "llama3": {key: value for key, value in LLAMA3_ROPE.items() if key != "rope_theta"},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
}
FAMILIES = {"linear": Qwen2Config, "yarn": Qwen3Config, "yarn, uneven": Qwen2Config}
POSITIONS = {
    "yarn": LONG,
    "llama3": LONG,
}  # by some files yarn has the new context there, by others the old one


def theirs_with(name: str, **changes: Any) -> Any:
    """A random model of transformers' whose context is stretched."""
    sizes = SIZES | {"max_position_embeddings": POSITIONS.get(name, ORIGINAL)} | changes
    config = FAMILIES.get(name, LlamaConfig)(**sizes, rope_parameters={"rope_theta": 500.0, **ROPES[name]})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    scramble(model)
    return model


@pytest.fixture(scope="module", params=ROPES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A checkpoint as transformers writes it, and the model it is of."""
    theirs, folder = theirs_with(request.param), tmp_path_factory.mktemp("rope")
    theirs.save_pretrained(folder)
    return folder, theirs


def load(folder: Path, context: int | None = LONG) -> Decoder:
    return load_model(folder, dtype=torch.float32, device="cpu", context=context)


@torch.no_grad()
def assert_same_logits(ours: Decoder, theirs: Any, length: int = LONG) -> None:
    ids = random_ids(length)
    expected = theirs(ids[None]).logits[0]
    assert expected.std() > 0.3  # else the tolerance would mean nothing
    torch.testing.assert_close(packed_logits(ours, [ids]), expected, atol=1e-5, rtol=0)


# Read and computed.


def test_logits_are_those_of_transformers_beyond_the_original_context(pair: tuple[Path, Any]) -> None:
    folder, theirs = pair
    ours = load(folder)
    assert ours.shape.max_context >= LONG
    assert_same_logits(ours, theirs)
    assert_same_logits(load(folder, ORIGINAL), theirs, ORIGINAL - 1)


def test_the_old_spelling_says_the_same(pair: tuple[Path, Any]) -> None:
    """`rope_theta` beside `rope_scaling`, its kind under `type` or `rope_type`."""
    folder, _ = pair
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"], kind = rope.pop("rope_theta"), rope.pop("rope_type")
    for name in ("type", "rope_type"):
        found = shape_from_config(config | {"rope_scaling": {name: kind, **rope}}, context=LONG)
        assert found == read_shape(folder, context=LONG)


@settings(max_examples=60)
@given(
    st.fixed_dictionaries(
        {
            "rope_type": st.sampled_from(["default", "linear", "yarn", "llama3"]),
            "rope_theta": st.floats(2.0, 1e7),
            "factor": st.floats(1.0, 64.0) | st.sampled_from([1.0, 2, 4, 40]),
            "original_max_position_embeddings": st.integers(1, 10**5),
        },
        optional={
            "attention_factor": st.none() | st.floats(0.0, 3.0),
            "beta_fast": st.none() | st.integers(0, 64) | st.floats(1.0, 64.0),
            "beta_slow": st.none() | st.integers(0, 4) | st.floats(0.1, 64.0),
            "mscale": st.none() | st.floats(0.0, 2.0),
            "mscale_all_dim": st.none() | st.floats(0.0, 2.0),
            "truncate": st.booleans(),
        },
    ),
    st.integers(1, 64),
    st.none() | st.integers(1, 10**5),
)
def test_frequencies_are_those_of_transformers(rope: dict[str, Any], half: int, outer: int | None) -> None:
    """Any keys, in a file whose context may be anything: to some bits of each frequency."""
    kind = rope["rope_type"]
    keys = {"linear": ["factor"], "llama3": ["factor", "original_max_position_embeddings"], "default": []}
    rope = {key: rope[key] for key in rope if key in ("rope_type", "rope_theta", *keys.get(kind, rope))}
    if kind == "llama3":
        rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    sizes = {**SIZES, "head_dim": 2 * half, "max_position_embeddings": 4096}
    outside = {} if outer is None else {"original_max_position_embeddings": outer}
    config = LlamaConfig(**sizes, rope_parameters=dict(rope), **outside)
    plain = {"head_dim": 2 * half, "rope_parameters": rope, "model_type": "llama", "hidden_act": "silu"}
    shape = shape_from_config({**SIZES, **plain, **outside, "max_position_embeddings": 4096})
    found = rotary_frequencies(shape.rope_theta, shape.head_dim, shape.rope_scaling)
    if kind == "default":
        expected = 1 / rope["rope_theta"] ** (torch.arange(0, 2 * half, 2).float() / (2 * half))
        factor = 1.0
    else:
        expected, factor = ROPE_INIT_FUNCTIONS[kind](config)
    torch.testing.assert_close(found, expected, rtol=2e-6, atol=0)
    assert (1.0 if shape.rope_scaling is None else shape.rope_scaling.attention()) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("positions", "scaling", "context"),
    [
        (4096, {"type": "linear", "factor": 4.0}, 16_384),  # original ones, says transformers
        (
            32_768,
            {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768},
            131_072,
        ),  # Qwen2.5
        (
            40_960,
            {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768},
            131_072,
        ),  # Qwen3
        (
            163_840,
            {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
            163_840,
        ),  # DeepSeek
        (8192, {"type": "yarn", "factor": 2.0}, 16_384),
        (8192, {"type": "yarn", "factor": None, "original_max_position_embeddings": 2048}, 8192),
        (4096, {"type": "dynamic", "factor": 2.0}, 4096),
        (131_072, ROPES["llama3"], 131_072),
    ],
)
def test_the_context_is_that_of_the_stretched_positions(
    positions: int, scaling: dict[str, Any], context: int
) -> None:
    config = LlamaConfig(**SIZES).to_dict() | {"max_position_embeddings": positions, "rope_scaling": scaling}
    shape = shape_from_config(config)
    assert shape.max_context == context
    saved = config_from_shape(shape, dtype="float32")
    assert shape_from_config(saved) == shape


# Dynamic positions have one base here.


def test_dynamic_positions_are_plain_up_to_the_original_context(tmp_path: Path) -> None:
    theirs = theirs_with("dynamic")
    theirs.save_pretrained(tmp_path)
    for context in (None, 7, ORIGINAL):
        ours = load(tmp_path, context)
        assert ours.shape.max_context == ORIGINAL
        for length in (1, 9, ORIGINAL):
            assert_same_logits(ours, theirs, length)


def test_dynamic_positions_beyond_have_the_base_of_the_longest_sequence(tmp_path: Path) -> None:
    """Whatever the run's own longest is, as far as the factor goes: the next run computes what this one trained."""
    theirs = theirs_with("dynamic")
    theirs.save_pretrained(tmp_path)
    one, other = load(tmp_path, ORIGINAL + 1), load(tmp_path, LONG)
    assert one.shape == other.shape
    assert (one.shape.max_context, one.shape.rope_scaling) == (LONG, None)
    assert_same_logits(one, theirs, LONG)
    save_model(one, tmp_path / "saved")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    for length in (9, ORIGINAL, 100, LONG):  # it is a plain model now
        assert_same_logits(one, again, length)


def test_dynamic_positions_need_heads_of_two_pairs() -> None:
    config = LlamaConfig(**SIZES).to_dict() | {"head_dim": 2, "rope_parameters": ROPES["dynamic"]}
    assert shape_from_config(config).max_context == 128
    with pytest.raises(ValueError, match="heads wider than 2"):
        shape_from_config(config, context=129)


# Saved.


def test_what_we_save_gives_the_same_logits_in_transformers_and_has_its_keys(
    pair: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, _ = pair
    ours = load(folder, None)
    save_model(ours, tmp_path / "ours")
    before, after = (json.loads((where / "config.json").read_text()) for where in (folder, tmp_path / "ours"))
    assert after["rope_parameters"] == before["rope_parameters"]
    assert after["rope_scaling"] | {"rope_theta": after["rope_theta"]} == before["rope_parameters"]
    assert after["max_position_embeddings"] == before["max_position_embeddings"]
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours")
    assert_same_logits(load(folder), again)
    assert read_shape(tmp_path / "ours") == ours.shape
    for_4 = {key: value for key, value in after.items() if key != "rope_parameters"}
    for_5 = {key: value for key, value in after.items() if key not in ("rope_theta", "rope_scaling")}
    assert shape_from_config(for_4) == shape_from_config(for_5) == ours.shape


# Lengthened.


@pytest.mark.parametrize("theta", [None, 9000.0])
@pytest.mark.parametrize("context", [150, 200])
def test_a_longer_context_keeps_the_scaling(
    pair: tuple[Path, Any], context: int, theta: float | None, tmp_path: Path
) -> None:
    folder, _ = pair
    ours = load(folder, None)
    before = ours.shape
    set_rotary(ours, context=context, rope_theta=theta)
    assert ours.shape.max_context == context >= before.max_context
    save_model(ours, tmp_path / "longer")
    assert load(tmp_path / "longer", None).shape.max_context - context in (0, 1, 2, 3)  # factor 4, of linear
    assert_same_logits(ours, AutoModelForCausalLM.from_pretrained(tmp_path / "longer"), context)
    if before.rope_scaling is not None and before.rope_scaling.type != "dynamic":
        assert ours.shape.rope_scaling == before.rope_scaling


@pytest.mark.parametrize("context", [3, ORIGINAL])
def test_a_context_that_is_there_changes_nothing(pair: tuple[Path, Any], context: int) -> None:
    ours = load(pair[0], None)
    before = ours.cos
    set_rotary(ours, context=context)
    assert ours.cos is before


def test_lengthened_dynamic_positions_have_one_base(tmp_path: Path) -> None:
    """Transformers' for a sequence of the new context, and never less than the run would have without."""
    theirs = theirs_with("dynamic")
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path, ORIGINAL)
    set_rotary(ours, context=ORIGINAL + 1)
    assert ours.shape == load(tmp_path, LONG).shape
    ours = load(tmp_path, ORIGINAL)
    set_rotary(ours, context=200)
    assert ours.shape == load(tmp_path, 200).shape
    assert_same_logits(ours, theirs, 200)


# Refused.


@pytest.mark.parametrize(
    ("rope", "message"),
    [
        (
            {"type": "longrope", "short_factor": [1.0], "long_factor": [2.0]},
            "'longrope' is not supported, only",
        ),
        ({"type": "su"}, "'su' is not supported"),
        (
            {"full_attention": {"rope_type": "default"}, "sliding_attention": None},
            "by the kind of layer are not",
        ),
        ({"rope_type": "yarn"}, "factor is missing"),
        ({"rope_type": "yarn", "factor": "4"}, "factor must be a number"),
        ({"rope_type": "yarn", "factor": 4.0, "truncate": None}, "truncate must be true or false"),
        ({"rope_type": "linear"}, "factor is missing"),
        ({"rope_type": "dynamic", "factor": 0}, "factor must be greater than 0"),
        ({"rope_type": "linear", "factor": 1e9}, "context of 128,000,000,000 tokens"),
        ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}, "high_freq_factor is missing"),
        (ROPES["llama3"] | {"low_freq_factor": 4.0}, "low_freq_factor 4 is not below high_freq_factor 4"),
    ],
)
def test_rope_types_and_keys_that_are_refused(rope: dict[str, Any], message: str) -> None:
    for key in ("rope_scaling", "rope_parameters"):
        with pytest.raises(ValueError, match=message):
            shape_from_config(LlamaConfig(**SIZES).to_dict() | {"rope_parameters": None, key: rope})


def test_keys_of_another_kind_are_refused_in_a_recipe() -> None:
    sizes = {"vocab_size": 8, "hidden_size": 16, "intermediate_size": 8, "num_layers": 1, "max_context": 64}
    shape = {**sizes, "num_heads": 2, "num_kv_heads": 2, "head_dim": 8}
    with pytest.raises(ValueError, match="beta_fast is no key of the rotary scaling linear"):
        ModelShape(**shape, rope_scaling={"type": "linear", "factor": 2.0, "beta_fast": 8})
    with pytest.raises(ValueError, match="original_context is missing; the rotary scaling yarn needs it"):
        ModelShape(**shape, rope_scaling={"type": "yarn", "factor": 2.0})


def test_fresh_weights_may_have_a_scaling() -> None:
    """Linear: position 2 is what position 1 was. Dynamic: nothing before the context ends, and so vLLM is told."""
    sizes = {"vocab_size": 8, "hidden_size": 16, "intermediate_size": 8, "num_layers": 1, "max_context": 64}
    plain = ModelShape(**sizes, num_heads=2, num_kv_heads=2, head_dim=8)
    linear, dynamic = (
        plain.model_copy(update={"rope_scaling": RopeScaling(type=kind, factor=2.0)})
        for kind in ("linear", "dynamic")
    )
    assert torch.equal(build_model(linear, seed=0).cos[::2], rotary_table(plain)[0][:32])
    assert torch.equal(build_model(dynamic, seed=0).cos, rotary_table(plain)[0])
    assert (dynamic.within_context(), linear.within_context()) == (plain, linear)
