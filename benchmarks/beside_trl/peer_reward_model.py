"""TRL's side of the part reward of `vs_trl.py`: a folder with request.json in, lines of JSON on stdout out.

Runs in the interpreter that has TRL, so nothing here may import foresail.

    python peer_reward_model.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from peer_pairs import GivenPairs, step_settings, train
from transformers import AutoTokenizer
from trl import RewardConfig, RewardTrainer  # type: ignore[import-not-found]


class GivenRewardTrainer(GivenPairs, RewardTrainer):
    pass


def main() -> None:
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    args = RewardConfig(**step_settings(folder, request), center_rewards_coefficient=request["center"])
    tokenizer = AutoTokenizer.from_pretrained(request["checkpoint"])
    train(GivenRewardTrainer, request, args=args, processing_class=tokenizer)


if __name__ == "__main__":
    main()
