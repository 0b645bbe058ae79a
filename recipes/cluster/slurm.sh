#!/bin/bash
# A run on the hosts of a SLURM job: Ray on all of them, the trainer on the first, which this script runs on.
#
#   sbatch --nodes=3 recipes/cluster/slurm.sh NAME recipe.toml cluster.ranks=8 rollout.workers=16
#
# The job is submitted where `foresail` and `ray` are on the PATH and where runs/ is seen by all hosts. It goes on
# with runs/NAME if that is there. Five minutes before its time is over it ends the step, saves, and queues again.
#SBATCH --job-name=foresail
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@300
set -euo pipefail

name=${1:?usage: sbatch slurm.sh NAME RECIPE [KEY=VALUE ...]}
recipe=${2:?usage: sbatch slurm.sh NAME RECIPE [KEY=VALUE ...]}
overrides=("${@:3}")
hosts=${SLURM_JOB_NUM_NODES:?this runs in a SLURM job; sbatch starts it}

# Whoever reaches Ray's ports needs this token. srun hands the environment to the other hosts.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
address=$(hostname --ip-address | awk '{print $1}'):${RAY_PORT:-6379}

# Of this host's cards the first is the trainer's, so that Ray does not give it to others.
cards=${CUDA_VISIBLE_DEVICES:-}
rest=""
[[ $cards == *,* ]] && rest=${cards#*,}
CUDA_VISIBLE_DEVICES=$rest ray start --head --node-ip-address="${address%:*}" --port="${address#*:}" \
    --include-dashboard=false
trap 'ray stop --force || true' EXIT
if ((hosts > 1)); then
    srun --nodes=$((hosts - 1)) --ntasks=$((hosts - 1)) --exclude="$(hostname -s)" --kill-on-bad-exit=0 \
        ray start --address="$address" --block &
fi

# All hosts have joined within ten minutes, or something is wrong with one.
for ((attempt = 0; ; attempt++)); do
    joined=$(python -c 'import ray; ray.init("auto", logging_level="ERROR"); print(sum(n["Alive"] for n in ray.nodes()))')
    ((joined == hosts)) && break
    if ((attempt == 120)); then
        echo "error: $joined of $hosts hosts have joined Ray at $address; look at their output above" >&2
        exit 1
    fi
    sleep 5
done

if [[ -d runs/$name/checkpoints ]]; then
    command=(foresail resume "runs/$name" "cluster.address=$address")
else
    command=(foresail rl "$recipe" "run.root=runs" "run.name=$name" cluster.kind=ray cluster.placement=separate
        "cluster.address=$address" "${overrides[@]}")
fi
"${command[@]}" &
run=$!
again=no
trap 'again=yes; kill -TERM $run' TERM
status=0
wait $run || status=$?
if [[ $again == yes ]]; then # the first wait ended with the signal, the run has not
    status=0
    wait $run || status=$?
fi
[[ $again == yes && $status == 0 ]] && scontrol requeue "$SLURM_JOB_ID"
exit $status
