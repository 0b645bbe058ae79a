"""Reinforcement learning of programs that own their loop, through the whole stage; and what branches weigh."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from small_runs import train, weights
from tiny_world import HELD_OUT, MAX_NEW, rl_recipe

from foresail.algorithms.advantages import ADVANTAGES
from foresail.algorithms.aggregation import Aggregation
from foresail.api.evaluate import evaluate
from foresail.recipe.tables.credit import Credit
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.parts import Run, Sampling
from foresail.recipe.tables.sources import HeldOut
from foresail.records import Group, Message, Problem, RunStopped, Sample, Verdict
from foresail.runlog.directory import RunDirectory
from foresail.runlog.episode import episode_lines
from foresail.train.policy.turn_credit import uniform_advantages
from foresail.train.update.batches import compute_advantages, pack_groups

if TYPE_CHECKING:
    from command_line import CommandLine

PROGRAM = '''
import json, os, urllib.request

def ask(base_url, key, messages, **options):
    body = json.dumps({"model": "x", "messages": messages, **options}).encode()
    request = urllib.request.Request(base_url + "/chat/completions", body, {"Authorization": "Bearer " + key})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

def once(agent):
    ask(agent.base_url, agent.api_key, agent.messages)

async def twice(agent):
    """Asks once more in the same conversation, and once in another."""
    first = ask(agent.base_url, agent.api_key, agent.messages, max_tokens=4)
    ask(agent.base_url, agent.api_key, [*agent.messages, first, {"role": "user", "content": "1"}], max_tokens=4)
    return ask(agent.base_url, agent.api_key, [{"role": "user", "content": "1+1"}], max_tokens=6)["content"]

def broken(agent):
    raise OSError("the disk is full")

def embeds(agent):
    key = {"Authorization": "Bearer " + agent.api_key}
    urllib.request.urlopen(urllib.request.Request(agent.base_url + "/embeddings", b"{}", key))

if __name__ == "__main__":
    problem = json.loads(os.environ["FORESAIL_PROBLEM"])
    address, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
    print(ask(address, key, problem["prompt"])["content"])
'''


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "my_agent.py").write_text(PROGRAM)
    return f"{tmp_path}/my_agent.py"


def exact(root: Path, name: str) -> Run:
    """Which rows share a batch depends on when programs ask; then no number may depend on it."""
    return Run(name=name, root=str(root), device="cpu", deterministic=True)


def test_programs_are_learned_from_and_evaluated(
    tiny_checkpoint: Path, tmp_path: Path, program: str, foresail: CommandLine
) -> None:
    outcome, records = train(
        tiny_checkpoint,
        tmp_path,
        steps=2,
        environment=Environment(program=f"{program}:twice"),
        sampling=Sampling(max_new_tokens=2 * MAX_NEW),
        eval=[HeldOut(source=HELD_OUT, limit=4)],
        eval_every=1,
    )
    rows = RunDirectory(outcome.run).read_rollouts(1)
    branched = [row for row in rows if row.get("branches")]
    assert branched and all(row["status"] in ("correct", "wrong", "unparsable") for row in rows)
    for row in branched:
        assert row["response"] == row["turns"][-1]["response"]  # it returned what it had last
        for record in (row, *row["branches"]):
            assert len(record["ids"]) == len(record["loss_mask"]) == len(record["logprobs"])
            assert sum(record["loss_mask"]) > 0
    shown = "\n".join(episode_lines(branched[0], "x"))
    assert "another record of the same episode" in shown
    assert records[0]["agent/turns/mean"] > 2 and records[0]["agent/records/mean"] > 1
    assert all(record["rollout/logprob_abs_diff"] < 1e-4 for record in records)
    assert any("val-core" in name for name in records[0])
    found = evaluate(outcome.run, samples=1)
    assert found.figures["greedy"]["value"] == records[-1]["val-core/arithmetic/acc/mean@1"]
    foresail.run("eval", outcome.run, "--samples", 1, "--output", tmp_path / "eval")
    record = json.loads((tmp_path / "eval" / "records.jsonl").read_text().splitlines()[0])
    assert record == found.records[0]


@pytest.mark.parametrize(("name", "why"), [("embeds", "404"), ("broken", r"the disk is full \(my_agent.py:")])
def test_a_program_that_cannot_work_fails_before_a_whole_rollout(
    tiny_checkpoint: Path, tmp_path: Path, program: str, name: str, why: str
) -> None:
    with pytest.raises(
        RunStopped, match=rf"2 episodes of problem .* were tried before the first step.*{why}"
    ):
        train(tiny_checkpoint, tmp_path, steps=2, environment=Environment(program=f"{program}:{name}"))
    assert RunDirectory(tmp_path / "rl").rollout_steps() == []


def test_a_program_that_asks_once_changes_nothing_that_is_learned(
    tiny_checkpoint: Path, tmp_path: Path, program: str
) -> None:
    once = Environment(program=f"{program}:once")
    plain, _ = train(tiny_checkpoint, tmp_path, run=exact(tmp_path, "plain"), steps=2)
    asked, _ = train(tiny_checkpoint, tmp_path, run=exact(tmp_path, "asked"), steps=2, environment=once)
    assert weights(plain.checkpoint).equal(weights(asked.checkpoint))


def test_a_process_is_learned_from_as_well(tiny_checkpoint: Path, tmp_path: Path, program: str) -> None:
    sizes: dict[str, Any] = {"steps": 1, "prompts_per_step": 2, "samples_per_prompt": 4}
    process = Environment(program=(sys.executable, program))
    plain, _ = train(tiny_checkpoint, tmp_path, run=exact(tmp_path, "plain"), **sizes)
    asked, _ = train(tiny_checkpoint, tmp_path, run=exact(tmp_path, "asked"), **sizes, environment=process)
    assert weights(plain.checkpoint).equal(weights(asked.checkpoint))


def test_programs_that_were_killed_are_told_at_the_end(
    tiny_checkpoint: Path, tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of many raises no alarm; its group is dropped, and the run ends well."""
    killed = tmp_path / "killed.py"
    first = (
        "open('starts', 'a').write('x')\n"  # two are tried before the first step
        "if os.path.getsize('starts') > 2 and not os.path.exists('once'):\n"
        "    open('once', 'x'); os.kill(os.getpid(), 9)"
    )
    killed.write_text(f"import os\nos.chdir({str(tmp_path)!r})\n{first}\nexec(open({program!r}).read())\n")
    sizes: dict[str, Any] = {"steps": 1, "prompts_per_step": 3, "samples_per_prompt": 4}
    outcome, (record,) = train(
        tiny_checkpoint, tmp_path, **sizes, environment=Environment(program=(sys.executable, str(killed)))
    )
    assert outcome.finished and record["rollout/verdicts_failed"] == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "warning: 1 verdicts failed in 1 of the run's steps, and their groups were dropped" in told
    assert "crashed: program: ProgramFailed: exit status -9" in told or "exit status -9" in told


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"program": "a.py:f", "name": "multi-hop"}, "remove environment.name"),
        ({"program": "a.py:f", "tools": ("python",)}, "remove environment.tools"),
        ({"program": "a.py:f", "corpus": "a.jsonl"}, "remove environment.corpus"),
        ({"program": "python a.py"}, 'a command as a list: ["python", "agent.py"]'),
        ({"program": "a.py"}, "write a function as file.py:function"),
        ({"program": ()}, "has no command"),
        ({"program": ("python", "")}, "has no command"),
    ],
)
def test_mistakes_of_the_table_are_told(
    tiny_checkpoint: Path, tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        rl_recipe(tiny_checkpoint, tmp_path, environment=Environment(**settings))


def test_credit_by_turn_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    for kind in ("pbsd", "turn_rewards"):
        with pytest.raises(ValueError, match=re.escape('set credit.kind = "uniform"')):
            rl_recipe(
                tiny_checkpoint,
                tmp_path,
                environment=Environment(program="a.py:f"),
                credit=Credit(kind=kind),
            )


def test_an_absent_file_is_told() -> None:
    assert "nowhere.py of nowhere.py:run does not exist" in next(
        Environment(program="nowhere.py:run").refusals()
    )


# What branches weigh.


def sample(*ids: int, branches: tuple[Sample, ...] = ()) -> Sample:
    size = len(ids)
    return Sample(
        ids=[*ids],
        loss_mask=[0] + [1] * (size - 1),
        logprobs=[0.0] + [-0.5] * (size - 1),
        versions=[0] * size,
        turns=[0] * size,
        finish="stop",
        branches=branches,
    )


def group(*samples: Sample, rewards: tuple[float, ...]) -> Group:
    problem = Problem(id="p", prompt=(Message(role="user", content="?"),), answer="!")
    verdict = Verdict(status="wrong", score=0.0)
    return Group(problem=problem, samples=samples, verdicts=(verdict,) * len(samples), rewards=rewards)


@pytest.mark.parametrize(
    "aggregation", ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"]
)
def test_two_branches_give_the_gradient_of_the_two_sequences_by_hand(aggregation: Aggregation) -> None:
    """Advantages are those of the episodes; every record is a sequence with its episode's."""
    branched = group(
        sample(1, 2, 3, 4, branches=(sample(1, 5, 6), sample(7, 8, 9, 2, 3))),
        sample(1, 3),
        sample(2, 4, 4),
        rewards=(1.0, 0.0, 0.5),
    )
    by_hand = replace(
        branched,
        samples=(sample(1, 2, 3, 4), sample(1, 5, 6), sample(7, 8, 9, 2, 3), sample(1, 3), sample(2, 4, 4)),
        rewards=(1.0,) * 5,
        verdicts=branched.verdicts * 2,
    )
    own = compute_advantages([branched], "grpo")
    assert torch.equal(own, ADVANTAGES["grpo"](torch.tensor([[1.0, 0.0, 0.5]]), torch.tensor([[9, 1, 2]])))
    spread = own[:, [0, 0, 0, 1, 2]]
    logits = torch.nn.Parameter(torch.randn(10, 10, generator=torch.Generator().manual_seed(0)))

    def gradient(groups: list[Group], advantages_GN: torch.Tensor) -> torch.Tensor:
        batches = pack_groups(
            groups,
            uniform_advantages(groups, advantages_GN),
            version=None,
            aggregation=aggregation,
            max_new_tokens=8,
            micro_batch_tokens=8,
            device=torch.device("cpu"),
        )
        loss = torch.zeros(())
        for batch in batches:
            assert batch.advantages_M is not None
            logprobs_TV = logits[batch.ids_T].log_softmax(-1)
            drawn_M = logprobs_TV[batch.sources_M, batch.ids_T[batch.targets_M]]
            loss = loss - (batch.weights_M * batch.advantages_M * drawn_M).sum()
        return torch.autograd.grad(loss, logits)[0]

    torch.testing.assert_close(gradient([branched], own), gradient([by_hand], spread))


def test_an_episodes_tokens_are_those_of_all_its_records() -> None:
    assert sample(1, 2, 3, branches=(sample(1, 5),)).num_response_tokens == 3
