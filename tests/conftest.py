"""What tests of several rooms share: one tiny checkpoint, trained once a session in a second, and the commands.

Imports wait until a fixture is asked for, so that rooms without torch are tested at once.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from command_line import CommandLine

# Hypothesis must not call a test slow, which on a busy machine every test is; the blob of a failure runs it again.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("any machine")

# Triton reads this when it is first imported, by whatever test comes first: without a GPU its interpreter runs
# the kernels.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Machine code for drafts is made once, while the workers collect; else each of them would make its own."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        # Collecting makes millions of objects that stay: a quarter of its time went into searching for garbage.
        gc.disable()
        return
    module = "foresail.rollout.drafts.warm_up"
    assert find_spec(module) is not None
    process = subprocess.Popen([sys.executable, "-m", module], cwd=config.rootpath, stderr=subprocess.DEVNULL)
    config.add_cleanup(process.wait)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def tiny_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_world import make_tokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    make_tokenizer().save(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_conversations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_world import write_conversations

    return write_conversations(tmp_path_factory.mktemp("data") / "sft.jsonl")


@pytest.fixture(scope="session")
def tiny_sft_run(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of the SFT run that made the tiny checkpoint. Read it, never write into it."""
    from tiny_world import sft_recipe

    from foresail.train.stages.sft import run_sft

    recipe = sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path_factory.mktemp("runs"))
    with redirect_stdout(StringIO()):  # sixty lines before every first failure would be in the way
        return run_sft(recipe).run


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_sft_run: Path) -> Path:
    return tiny_sft_run / "checkpoints" / "step_60"


@pytest.fixture
def foresail(tmp_path: Path) -> CommandLine:
    """`foresail.run("show", "runs/rl").out`: commands that run in `tmp_path`."""
    from command_line import CommandLine

    return CommandLine(tmp_path)


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollout workers are forks of the server of `command_line`: each saves the seconds of importing torch.

    What they are told, share and answer is the same; one test in test_worker_instance.py starts them as a run does.
    """
    import torch.multiprocessing as processes
    from command_line import servers

    monkeypatch.setattr(processes, "get_context", lambda _method: servers())
