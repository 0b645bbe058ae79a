"""Keeps what alarms look at of a real run, with few digits: `python tests/runlog/record_quickstart.py RUN/rl`."""

import json
import sys
from pathlib import Path

NAMES = (
    "step",
    "rollout/accuracy",
    "rollout/reward",
    "critic/rewards/max",
    "critic/rewards/min",
    "groups/solved",
    "groups/unsolved",
    "groups/useful",
    "response_length/mean",
    "response_length/clip_ratio",
    "actor/entropy",
    "actor/grad_norm",
    "actor/pg_clipfrac",
    "rollout/logprob_kl",
    "verdict/timeout",
    "verdict/crashed",
    "verdict/ungradable",
)

lines = []
for line in (Path(sys.argv[1]) / "metrics.jsonl").read_text().splitlines():
    record = json.loads(line)
    kept = {name: float(f"{record[name]:.4g}") for name in NAMES if name in record}
    lines.append(json.dumps(kept | {"step": record["step"]}) + "\n")
Path(__file__).with_name("quickstart_metrics.jsonl").write_text("".join(lines))
