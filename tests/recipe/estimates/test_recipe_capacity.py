"""What the machine and the run's folder have room for: refusals of the preflight, and their mends."""

import os
import shutil
from pathlib import Path

import pytest
from sound_recipe import check, in_empty_folder, make, only_refusal

from foresail.recipe.estimates import machine
from foresail.recipe.reading import preflight as preflight_module
from foresail.recipe.reading.describe import describe
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import inputs
from foresail.runlog.directory import RunDirectory

__all__ = ["in_empty_folder"]  # a fixture for every test here


def test_wandb_needs_a_login_or_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(inputs, "find_spec", lambda name: object())
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    netrc = tmp_path / "netrc"
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "nobody is logged in to Weights & Biases; run `wandb login`" in only_refusal("run.wandb=project")
    netrc.write_text("machine api.wandb.ai login user password secret\n")
    netrc.chmod(0o600)
    assert check("run.wandb=project").refusals == ()
    monkeypatch.setenv("WANDB_BASE_URL", "https://wandb.example.com")
    assert "wandb login" in only_refusal("run.wandb=project")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert check("run.wandb=project").refusals == ()


def test_wandb_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "find_spec", lambda name: None)
    assert "pip install 'foresail[wandb]'" in only_refusal("run.wandb=project")


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = check().memory
    assert memory is not None and memory.least == memory.standing
    give(monkeypatch, memory.standing - 1)
    assert "this machine has" in only_refusal()
    assert only_refusal().endswith("set engine.kv_tokens or lower engine.max_running")
    give(monkeypatch, memory.standing - memory.kv_cache)  # with no cache at all it would not fit
    assert only_refusal().endswith("use a smaller model")
    give(monkeypatch, memory.total - 1)
    assert check().refusals == ()
    assert check().warnings[0].endswith("set micro_batch_tokens below 128 or set recompute = true")
    give(monkeypatch, memory.standing)
    (warning,) = check("recompute=true", "micro_batch_tokens=100000").warnings
    assert warning.endswith("set micro_batch_tokens below 1920"), "no update has more"
    give(monkeypatch, memory.total)
    assert check().warnings == ()
    give(monkeypatch, None)
    assert check().warnings == check().refusals == ()


def give(monkeypatch: pytest.MonkeyPatch, memory: int | None) -> None:
    monkeypatch.setattr(preflight_module, "device_memory", lambda device: memory)


def test_too_large_a_cache_names_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, 1_000_000)
    assert "set engine.kv_tokens or lower engine.max_running" in only_refusal(
        "engine.max_running=4000", "samples_per_prompt=500"
    )
    assert check("engine.max_running=4000").refusals == (), "a step of 32 samples needs no 4000 rows"


def test_too_small_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the cache lends its memory to the updates: what counts is the greater."""
    monkeypatch.setattr(preflight_module, "guess_device", lambda wanted: "cuda")
    memory = check().memory
    assert memory is not None and memory.least == memory.standing - min(memory.kv_cache, memory.gradients)
    give(monkeypatch, 1)
    assert "this GPU has" in only_refusal("engine.kv_tokens=80")
    assert only_refusal("engine.kv_tokens=80").endswith(
        'set optimizer.states = "8bit", or train LoRA adapters with [lora]'
    )
    eight = ("engine.kv_tokens=80", "optimizer.states=8bit")
    assert only_refusal(*eight).endswith("; train LoRA adapters with [lora]")
    assert only_refusal(*eight, "lora.rank=2", "optimizer.lr=1e-4").endswith("use a smaller model")
    give(monkeypatch, memory.total - 1)
    assert check().refusals == () and "this GPU has" in check().warnings[0]
    assert "Memory on cuda:" in describe(check()) and "bfloat16" in describe(check())


def test_what_the_drivers_tool_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 143771\necho 81559\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.device_memory("cuda") == 143771 * 2**20
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert machine.card_memory() == 81559 * 2**20
    for unknown in ("", "7", "GPU-3b5c"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", unknown)
        assert machine.card_memory() is None
    tool.write_text("#!/bin/sh\necho no driver >&2\nexit 9\n")
    assert machine.card_memory() is None
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert machine.card_memory() is None


def test_cuda_without_a_card_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.Path, "glob", lambda self, pattern: iter(()))
    assert "no NVIDIA card is visible here" in check("run.device=cuda").warnings[0]


def test_device_is_guessed_from_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.Path, "glob", lambda self, pattern: iter([Path("/dev/nvidia0")]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.guess_device("auto") == "cuda" and machine.guess_device("cpu") == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert machine.guess_device("auto") == "cpu" and machine.guess_device("cuda") == "cuda"


def test_memory_of_this_machine_is_plausible() -> None:
    found = machine.main_memory()
    assert found is None or 2**28 < found <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    size = check().checkpoint
    assert size is not None and size.state == 2 * size.weights
    leave(monkeypatch, size.whole - 1)
    assert only_refusal().endswith("free some, or set run.root to another disk")
    leave(monkeypatch, 3 * size.whole - 1)
    assert check().refusals == () and "lower checkpoints.keep" in check().warnings[0]
    leave(monkeypatch, 3 * size.whole)
    assert check().warnings == ()


def test_old_checkpoints_count_without_the_trainers_state(monkeypatch: pytest.MonkeyPatch) -> None:
    size = check().checkpoint
    assert size is not None
    leave(monkeypatch, 3 * size.whole + 4 * size.weights)
    many = check("checkpoints.keep=6")
    assert many.warnings == (), "the new one, two more whole, and four"
    assert "the newest 6 kept, but for 2 without the trainer's state: 0.03 MB" in describe(many)
    assert "lower checkpoints.keep" in check("checkpoints.keep=7").warnings[0]
    assert check("checkpoints.keep=7", "steps=7").warnings == (), "no eighth is ever written"
    by_steps = ("checkpoints.keep=70", "checkpoints.every=2", "checkpoints.minutes=none")
    assert check(*by_steps).warnings == (), "ten steps make five"
    assert check("checkpoints.keep=5", "checkpoints.best=score/mean").warnings == ()
    assert check("checkpoints.keep=6", "checkpoints.best=score/mean").warnings, "the best one comes on top"


def leave(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(preflight_module, "free_disk", lambda folder: free)


def test_free_disk_of_a_folder_yet_to_be_made(tmp_path: Path) -> None:
    assert machine.free_disk(tmp_path / "not" / "yet") == pytest.approx(
        shutil.disk_usage(tmp_path).free, rel=0.1
    )


def test_run_root_that_is_a_file() -> None:
    Path("runs").write_text("")
    assert only_refusal().startswith("runs/rl cannot be made, because ")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_root() -> None:
    Path("locked").mkdir(mode=0o500)
    assert "cannot be written to; set run.root" in only_refusal("run.root=locked")


def test_unwritable_root_as_the_system_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "cannot be written to; set run.root to a folder of yours" in only_refusal()


def test_folder_with_another_recipe() -> None:
    record_run(make("optimizer.lr=1e-3", "steps=9"))
    message = only_refusal()
    assert message.startswith("runs/rl holds a run of another recipe (other steps, optimizer.lr)")
    assert message.endswith("choose another run.name, or go on with that run: foresail resume runs/rl")


def test_folder_with_this_recipe() -> None:
    record_run(make())
    mend = "go on with it: foresail resume runs/rl, or choose another run.name"
    assert only_refusal() == f"runs/rl already holds this run; {mend}"


def test_where_a_run_lies_is_no_difference() -> None:
    record_run(make())
    Path("runs").rename("moved")
    assert "already holds this run" in only_refusal("run.root=moved")


def test_folder_with_a_recipe_nobody_can_read() -> None:
    record_run(make())
    Path("runs/rl/recipe.toml").write_text("stage = 'rl'\nsteps = 1\nold_key = 3\n")
    assert "holds a run whose recipe cannot be read; choose another run.name" in only_refusal()
    Path("runs/rl/recipe.toml").unlink()
    assert only_refusal() == "runs/rl holds a run without its recipe; choose another run.name"


@pytest.mark.parametrize(
    ("metrics", "begun"),
    [
        ("", False),
        ('{"step": 0, "a": 1}\n', False),
        ('{"step": 0}\n{"step": 1, "half', False),
        ('{"step": 0}\n{"step": 1}\n', True),
    ],
)
def test_a_run_that_never_began_may_be_started_anew(metrics: str, begun: bool) -> None:
    """The preflight and the run directory, in rooms that do not know each other, go by the same rule."""
    recipe = make()
    record_run(make("steps=9"), metrics)
    assert bool(preflight(recipe).refusals) is begun
    run = RunDirectory("runs/rl")
    assert run.has_begun() is begun
    run.checkpoint_path(0).mkdir(parents=True)
    assert len(preflight(recipe).refusals) == 1 and run.has_begun()


def record_run(recipe: Stage, metrics: str = '{"step": 0}\n{"step": 1}\n') -> None:
    folder = Path(recipe.run.root) / recipe.run.name
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(to_toml(recipe), encoding="utf-8")
    (folder / "metrics.jsonl").write_text(metrics)


def test_all_refusals_come_at_once() -> None:
    found = check("model.path=nowhere", "data.source=gone.jsonl", "engine.kv_tokens=1")
    assert len(found.refusals) == 3
    assert [line.split(":")[0] for line in describe(found).splitlines()[-3:]] == ["refused"] * 3
