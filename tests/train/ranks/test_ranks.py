"""What ranks compute together is what one process computes alone: losses, gradients, weights, states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import PATIENCE, servers
from hypothesis import given
from hypothesis import strategies as st
from rank_cases import CPU, cases, make_model
from rank_work import expert_load, trained, work
from torch import Tensor

from foresail.model.device import choose_library
from foresail.model.hf import load_model
from foresail.records import TrainSequence
from foresail.train.state_files import share_of
from foresail.train.update.split import split_over_ranks, unevenness
from foresail.world import ONE_PROCESS

SIZES = (1, 2, 4)
CASES = dict(cases())
alone: dict[str, dict[str, Any]] = {}


@pytest.fixture(scope="module", params=SIZES)
def ranks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """One process group, in which every case is computed, with context groups of every size."""
    folder, size = tmp_path_factory.mktemp("ranks"), request.param
    members = [servers().Process(target=work, args=(rank, size, folder)) for rank in range(size)]
    for member in members:
        member.start()
    for member in members:
        member.join(PATIENCE)
        member.kill()
    assert [member.exitcode for member in members] == [0] * size
    return size, folder


@pytest.fixture(scope="module")
def found(ranks: tuple[int, Path]) -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = torch.load(ranks[1] / "found.pt", weights_only=False)
    return read


@pytest.mark.parametrize("case", CASES)
def test_losses_and_gradients_are_those_of_one_process(
    ranks: tuple[int, Path], found: dict[str, dict[str, Any]], case: str
) -> None:
    if case not in alone:
        choose_library(torch.float32)  # as the ranks did: another one rounds otherwise
        alone[case] = CASES[case](ONE_PROCESS)
    for context, ours in found["cases"].items():
        if case not in ours:
            assert context > 1 or ranks[0] != 2
            continue
        assert ours[case].keys() == alone[case].keys()
        for name, expected in alone[case].items():
            size = max(1.0, as_tensor(expected).norm().item())
            apart = (as_tensor(ours[case][name]) - as_tensor(expected)).norm().item()
            assert apart <= 1e-6 * size, f"{name} differs by {apart} where {context} ranks share a batch"


def test_the_load_of_experts_is_that_of_one_process(found: dict[str, dict[str, Any]]) -> None:
    load_LE, corrections_LE = expert_load(ONE_PROCESS)
    assert load_LE.sum(1).tolist() == [5 * 8 * 2] * 2, "sequences, tokens, experts of each; of two layers"
    for ours in found["expert load"].values():
        assert torch.equal(ours[0], load_LE) and torch.equal(ours[1], corrections_LE)


def as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)


def test_totals_are_over_all_ranks(ranks: tuple[int, Path], found: dict[str, dict[str, Any]]) -> None:
    size, totals = ranks[0], found["world"]
    total, missing = size * (size + 1) / 2, size > 1
    assert (totals["sum"][0], totals["int"], totals["max"][0]) == (total, total, size)
    assert totals["sum"][1].isnan() == totals["max"][1].isnan() == missing
    assert (totals["float"], totals["shared"]) == (0.5 * (size - 1), "of 0")
    assert totals["gathered"] == [*range(size)]


@pytest.mark.parametrize("experts", [False, True])
def test_a_model_saved_by_ranks_is_read_by_one_process(ranks: tuple[int, Path], experts: bool) -> None:
    size, folder = ranks[0], ranks[1] / ("saved with experts" if experts else "saved")
    model = load_model(folder, dtype=torch.float32, device=CPU)
    whole_model = make_model(ONE_PROCESS, experts=experts)
    for ours, theirs in zip(model.parameters(), whole_model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    files = [*folder.glob("*.safetensors")]
    assert len(files) >= size, "every rank writes"
    largest = max(file.stat().st_size for file in files)
    whole = sum(file.stat().st_size for file in files)
    assert size == 1 or largest < whole, "no rank has held all of it"


def test_one_process_goes_on_with_the_state_of_ranks(
    ranks: tuple[int, Path], found: dict[str, dict[str, Any]]
) -> None:
    for name, pieces in found["states"].items():
        kind, dtype = name.split("-")
        learner = trained(ONE_PROCESS, kind, getattr(torch, dtype), updates=0)
        learner.load(ranks[1] / "states" / name)
        assert learner.optimizer is not None
        for key, mine in learner.optimizer.state().items():
            if key.startswith(("mean_", "square_")) and ranks[0] > 1:
                continue  # in other blocks, see below
            expected = pieces[key][0] if mine.ndim == 0 else torch.cat(pieces[key])
            assert torch.equal(mine, expected), key


def test_moments_of_a_byte_are_close_to_what_they_were_in_other_blocks(
    ranks: tuple[int, Path], found: dict[str, dict[str, Any]]
) -> None:
    from foresail.train.optim.moments import MEAN, dequantize

    learner = trained(ONE_PROCESS, "8bit", torch.bfloat16, updates=0)
    learner.load(ranks[1] / "states" / "8bit-bfloat16")
    assert learner.optimizer is not None
    pieces, state = found["states"]["8bit-bfloat16"], learner.optimizer.state()
    for name in learner.optimizer.names:
        codes, scales = pieces[f"mean_N:{name}"], pieces[f"mean_scale_B:{name}"]
        before = torch.cat([dequantize(*part, MEAN) for part in zip(codes, scales, strict=True)])
        after = dequantize(state[f"mean_N:{name}"], state[f"mean_scale_B:{name}"], MEAN)
        assert (before - after).abs().max() <= before.abs().max() / 8  # three bits of mantissa


def test_muon_moves_sharded_matrices_as_whole_ones(found: dict[str, dict[str, Any]]) -> None:
    learner, pieces = trained(ONE_PROCESS, "muon", torch.float32), found["states"]["muon-float32"]
    for name, weight in learner.model.named_parameters():
        torch.testing.assert_close(
            torch.cat(pieces[f"weight:{name}"]), weight.detach(), rtol=0, atol=1e-4, msg=name
        )


# Without processes.


@given(
    lengths=st.lists(st.integers(2, 60), min_size=1, max_size=40),
    ranks=st.integers(1, 8),
    prompts=st.integers(1, 5),
)
def test_every_sequence_is_dealt_once_and_ranks_are_as_even_as_can_be(
    lengths: list[int], ranks: int, prompts: int
) -> None:
    sequences = [
        TrainSequence(ids=[number % prompts] * length, loss_mask=[0] + [1] * (length - 1))
        for number, length in enumerate(lengths)
    ]
    for together in (False, True):
        dealt = split_over_ranks(sequences, ranks, together=together)
        assert len(dealt) == ranks
        assert sorted(number for share in dealt for number in share) == [*range(len(lengths))]
        totals = [sum(lengths[number] for number in share) for share in dealt]
        if not together:
            # dealt longest first, nobody is more than one sequence above another
            assert max(totals) - min(totals) <= max(lengths)
        assert len(lengths) < ranks or together or min(totals) > 0


def test_answers_to_one_prompt_stay_together_where_that_is_even() -> None:
    def sequence(prompt: int) -> TrainSequence:
        return TrainSequence(ids=[prompt] * 5 + [1, 2], loss_mask=[0] * 5 + [1, 1])

    sequences = [sequence(number % 4) for number in range(16)]
    shares = split_over_ranks(sequences, 2, together=True)
    assert [len({sequences[number].ids[0] for number in share}) for share in shares] == [2, 2]
    few = split_over_ranks(sequences[:1] * 6, 4, together=True)  # one prompt, four ranks
    assert sorted(len(share) for share in few) == [1, 1, 2, 2]


def test_a_sequence_without_a_loss_is_nobodys() -> None:
    silent = TrainSequence(ids=[1, 2], loss_mask=[0, 0])
    heard = TrainSequence(ids=[1, 2], loss_mask=[0, 1])
    assert split_over_ranks([silent, heard, silent], 2, together=True) == [[1], []]


def test_unevenness_is_the_fullest_over_the_mean() -> None:
    assert unevenness([3, 1]) == 1.5 and unevenness([2, 2]) == 1.0 and unevenness([0, 0]) == 0.0


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 6), st.integers(1, 6))
def test_any_number_of_ranks_goes_on_from_any(rows: int, columns: int, before: int, after: int) -> None:
    whole = torch.arange(rows * columns).view(rows, columns)
    pieces = shares(whole, before)
    offsets = [sum(len(piece) for piece in shares(whole, after)[:rank]) * columns for rank in range(after)]
    again = [
        share_of(pieces, offset, like) for offset, like in zip(offsets, shares(whole, after), strict=True)
    ]
    assert torch.equal(torch.cat(again), whole)


def shares(whole: Tensor, ranks: int) -> list[Tensor]:
    """Rows of each rank, as FSDP2 cuts them; the last ones may have none."""
    each = -(-len(whole) // ranks)
    return [whole[rank * each : (rank + 1) * each] for rank in range(ranks)]


def test_the_state_of_a_smaller_model_is_refused() -> None:
    with pytest.raises(ValueError, match="have no 4"):
        share_of([torch.zeros(3), torch.zeros(2)], 2, torch.zeros(4))
