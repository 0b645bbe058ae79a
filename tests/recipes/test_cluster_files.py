"""What recipes/cluster ships for SLURM and Kubernetes: the commands are ours, and fit the hosts they are for."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl

FILES = Path(__file__).parents[2] / "recipes/cluster"
RECIPE = FILES.parent / "rl-arithmetic.toml"

# Stand-ins for the commands of a SLURM host: each writes down how it was called.
STUBS = {
    "ray": 'echo "ray $* cards=${CUDA_VISIBLE_DEVICES-} mode=$RAY_AUTH_MODE token=$RAY_AUTH_TOKEN" >> "$CALLS"',
    "srun": 'echo "srun $*" >> "$CALLS"',
    "scontrol": 'echo "scontrol $*" >> "$CALLS"',
    "hostname": '[ "$1" = --ip-address ] && echo 10.0.0.7 || echo first',
    "python": 'echo "${JOINED:-3}"',
    "sleep": "true",
    "foresail": 'trap "exit 0" TERM; echo "foresail $*" >> "$CALLS"; while [ -n "$LONG" ]; do :; done',
}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name, body in STUBS.items():
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
    return tmp_path


def start(host: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", str(FILES / "slurm.sh"), *arguments],
        cwd=host,
        env={
            "PATH": f"{host / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(host / "calls"),
            "LONG": "",
            "SLURM_JOB_NUM_NODES": "3",
            "SLURM_JOB_ID": "41",
            "CUDA_VISIBLE_DEVICES": "0,1,2,3",
            **environment,
        },
        stderr=subprocess.PIPE,
        text=True,
    )


def calls(host: Path) -> list[str]:
    path = host / "calls"
    return path.read_text().splitlines() if path.exists() else []


def wait_for_call(host: Path, beginning: str) -> str:
    """Some are made in the background."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for call in calls(host):
            if call.startswith(beginning):
                return call
        time.sleep(0.02)
    raise AssertionError(f"{beginning} was not called, but {calls(host)}")


def test_a_slurm_job_starts_ray_on_all_hosts_with_one_token_and_then_the_run(host: Path) -> None:
    job = start(host, "first", str(RECIPE), "cluster.ranks=2", "rollout.workers=4")
    assert job.wait(60) == 0, job.communicate()[1]
    head = wait_for_call(host, "ray start --head")
    assert "cards=1,2,3 mode=token" in head, "the first card is the trainer's"
    token = head.partition("token=")[2]
    assert len(token) == 64 and int(token, 16)
    workers = wait_for_call(host, "srun")
    assert "--ntasks=2" in workers and "ray start --address=10.0.0.7:6379 --block" in workers
    assert wait_for_call(host, "ray stop")
    run = wait_for_call(host, "foresail")
    recipe = load_recipe(RECIPE, shlex.split(run)[3:])
    assert isinstance(recipe, Rl) and recipe.run.folder == Path("runs/first")
    assert (recipe.cluster.kind, recipe.cluster.address) == ("ray", "10.0.0.7:6379")
    assert (recipe.cluster.ranks, recipe.rollout.workers) == (2, 4)


def test_each_slurm_job_has_a_token_of_its_own(host: Path) -> None:
    for _ in range(2):
        assert start(host, "first", str(RECIPE)).wait(60) == 0
    heads = [call for call in calls(host) if call.startswith("ray start --head")]
    assert len({call.partition("token=")[2] for call in heads}) == 2


def test_a_slurm_job_goes_on_with_a_run_that_is_there(host: Path) -> None:
    (host / "runs/first/checkpoints").mkdir(parents=True)
    assert start(host, "first", str(RECIPE)).wait(60) == 0
    assert "foresail resume runs/first cluster.address=10.0.0.7:6379" in calls(host)


def test_a_slurm_job_whose_time_is_over_ends_the_run_and_queues_again(host: Path) -> None:
    job = start(host, "first", str(RECIPE), LONG="yes")
    wait_for_call(host, "foresail")
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == 0, job.communicate()[1]
    assert "scontrol requeue 41" in calls(host)


def test_a_slurm_job_says_so_where_a_host_does_not_join(host: Path) -> None:
    job = start(host, "first", str(RECIPE), JOINED="2")
    assert job.wait(60) == 1
    assert "2 of 3 hosts have joined Ray" in job.communicate()[1]
    assert not any(call.startswith("foresail") for call in calls(host))


def test_a_slurm_job_needs_a_name_and_a_recipe(host: Path) -> None:
    job = start(host, "first")
    assert job.wait(60) != 0
    assert "usage: sbatch slurm.sh NAME RECIPE" in job.communicate()[1]
    assert not calls(host)


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    """The RayJob of the manifest."""
    documents = yaml.safe_load_all((FILES / "kuberay.yaml").read_text())
    return next(document["spec"] for document in documents if document["kind"] == "RayJob")


def cards(group: dict[str, Any]) -> int:
    [container] = group["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    return int(container["resources"]["limits"]["nvidia.com/gpu"])


def test_the_manifests_command_is_a_run_of_ours_that_fits_its_pods(job: dict[str, Any]) -> None:
    script = shlex.split(job["entrypoint"])[2]
    words = shlex.split(script.partition("else ")[2].partition(";")[0])
    assert words[:3] == ["foresail", "rl", "/recipe/recipe.toml"]
    recipe = load_recipe(RECIPE, words[3:])
    assert isinstance(recipe, Rl) and recipe.cluster.kind == "ray" and recipe.cluster.placement == "separate"
    assert f"foresail resume {recipe.run.folder} " in script
    groups = job["rayClusterSpec"]["workerGroupSpecs"]
    assert recipe.rollout.workers == sum(group["replicas"] * cards(group) for group in groups)


def test_the_manifests_cluster_has_tokens_and_keeps_the_trainers_card_to_itself(job: dict[str, Any]) -> None:
    cluster = job["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    head = cluster["headGroupSpec"]
    assert cards(head) == 1 and head["rayStartParams"]["num-gpus"] == "0"


def test_every_mount_of_the_manifest_has_its_volume(job: dict[str, Any]) -> None:
    cluster = job["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == volumes
