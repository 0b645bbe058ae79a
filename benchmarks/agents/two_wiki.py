"""SmolLM2-135M learns to search Wikipedia: SFT on search traces, then reinforcement over episodes (2Wiki).

Traces are made from the corpus: for questions of the training part whose documents name one another on the way to
the answer, and for questions that are read off the passages (who directed it, when was he born, and both in a row).
The held-out questions are seen in neither stage. BM25 over the 6,119 passages, JSON tool calls, at most four turns.

    python benchmarks/agents/two_wiki.py --model checkpoints/SmolLM2-135M-Instruct --qa ../shared/data/qa/2wiki

Given again, the command goes on where it was; the last line is JSON: success before and after.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foresail.agents.tools.call_formats import Hermes, ToolCall
from foresail.agents.tools.corpus import CorpusPassage, read_corpus
from foresail.agents.tools.search import Index, show
from foresail.agents.tools.tool_environment import shorten
from foresail.data.problems.problems import load_problems
from foresail.quickstart.reasoning import write_lines
from foresail.quickstart.stages import train_stage
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.credit import Credit
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import Conversations, HeldOut, ProblemSource
from foresail.runlog.directory import RunDirectory

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NUM_TEST, NUM_READ_OFF = 100, 2500
RESULT_CHARS, PASSAGES, MAX_TURNS = 800, 3, 4
MAX_PROMPT, MAX_NEW = 128, 1280
DATE = r"\d{1,2} \w+ \d{4}"
BORN = re.compile(rf"\bborn:? ?(?:on )?(?P<date>{DATE})")
DIED = re.compile(rf"\b(?:died|–|-) ?(?:on )?(?P<date>{DATE})")
PLACE = re.compile(r"\bborn in (?P<place>[A-Z]\w+(?: [A-Z]\w+)*)")
DIRECTED = re.compile(r"\bdirected by (?P<name>[A-Z][\w.]+(?: [A-Z][\w.]+){1,2})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path("runs/two-wiki"))
    parser.add_argument("--model", required=True, help="a checkpoint of SmolLM2-135M-Instruct")
    parser.add_argument("--qa", type=Path, required=True, help="the folder of 2wiki: questions and corpus")
    parser.add_argument("--sft-steps", type=int, default=300)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--credit", choices=("uniform", "pbsd"), default="uniform")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    write_data(options)
    train_stage(sft_recipe(options))
    run = RunDirectory(train_stage(rl_recipe(options)).run)
    records = run.read_metrics()
    measured = [{k: v for k, v in r.items() if k.startswith("val-core/")} for r in records]
    measured = [figures_of_step for figures_of_step in measured if figures_of_step]
    figures = (
        "timing_s/rollout",
        "timing_s/update",
        "agent/turns/mean",
        "agent/tool_errors/share",
    )
    means = {name: mean([r[name] for r in records if name in r]) for name in figures}
    report = {"before": measured[0], "after": measured[-1], "steps": records[-1]["step"], **means}
    print(json.dumps(report | {"traces": count_lines(options.root / "sft.jsonl"), "credit": options.credit}))


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


# Data.


def write_data(options: argparse.Namespace) -> None:
    if (options.root / "sft.jsonl").exists():
        return
    options.root.mkdir(parents=True, exist_ok=True)
    source = parts.Problems(source=str(options.qa / "qa_matched_to_corpus.jsonl.gz"))
    rows = [
        {"question": p.prompt[-1].content, "answer": p.answer, "titles": p.extra["titles"]}
        for p in load_problems(source)
    ]
    rng = random.Random(f"2wiki {options.seed}")
    rng.shuffle(rows)
    test, train = rows[:NUM_TEST], rows[NUM_TEST:]
    passages = read_corpus(str(corpus_of(options)))
    held_out = {row["question"] for row in test}
    made = [*from_questions(train, passages), *read_off(passages, rng)]
    traces = Traces(passages)
    episodes = [traces.write(*each) for each in made if each[0] not in held_out]
    rng.shuffle(episodes)
    write_lines(options.root / "sft.jsonl", [{"messages": episode} for episode in episodes])
    write_lines(options.root / "test.jsonl", test)
    write_lines(options.root / "train.jsonl", train)
    (options.root / "template.jinja").write_text(TEMPLATE)


def corpus_of(options: argparse.Namespace) -> Path:
    return options.qa / "corpus6119.jsonl.gz"


Question = tuple[str, list[str], str]  # what is asked, what to search for one after the other, the answer


def from_questions(rows: Sequence[dict[str, Any]], passages: Sequence[CorpusPassage]) -> Iterator[Question]:
    """Those whose documents lead to the answer: the entity's own, or one that it names."""
    texts = {passage.title: passage.text for passage in passages}
    for row in rows:
        titles, answer = [title for title in row["titles"] if title in texts], row["answer"]
        if len(titles) == 2 or (titles and answer.lower() in texts[titles[0]].lower()):
            yield row["question"], titles, answer
        elif titles:
            named = [t for t in texts if t in texts[titles[0]] and answer.lower() in texts[t].lower()]
            if named:
                yield row["question"], [titles[0], max(named, key=len)], answer


def read_off(passages: Sequence[CorpusPassage], rng: random.Random) -> Iterator[Question]:
    """Questions that passages answer by their wording, of one search and of two."""
    texts = {passage.title: passage.text for passage in passages}
    questions: list[Question] = []
    for title, text in texts.items():
        for question, answer in facts_about(title, text):
            questions.append((question, [title], answer))
        director = DIRECTED.search(text)
        if director is None:
            continue
        name = director["name"].rstrip(".")
        questions.append((f"Who is the director of film {title}?", [title], name))
        for question, answer in facts_about(name, texts.get(name, "")):
            questions.append((question.replace(name, f"the director of film {title}"), [title, name], answer))
    rng.shuffle(questions)
    yield from sorted(questions, key=lambda each: len(each[1]), reverse=True)[:NUM_READ_OFF]


def facts_about(name: str, text: str) -> Iterator[tuple[str, str]]:
    if match := BORN.search(text):
        yield f"When was {name} born?", match["date"]
    if match := DIED.search(text):
        yield f"When did {name} die?", match["date"]
    if match := PLACE.search(text):
        yield f"Where was {name} born?", match["place"]


class Traces:
    """Episodes as the environment of tools would have them."""

    def __init__(self, passages: Sequence[CorpusPassage]) -> None:
        self.index = Index(passages)

    def write(self, question: str, queries: Sequence[str], answer: str) -> list[dict[str, str]]:
        form = Hermes()
        messages = [{"role": "user", "content": question}]
        for query in queries:
            result = shorten(show(self.index.find(query, PASSAGES)), RESULT_CHARS)
            call = form.write(ToolCall("search", {"query": query}))
            messages.append({"role": "assistant", "content": call})
            messages += [{"role": m.role, "content": m.content} for m in form.observe([result]).messages]
        return [*messages, {"role": "assistant", "content": f"<answer>{answer}</answer>"}]


# Stages.


def sft_recipe(options: argparse.Namespace) -> Sft:
    return Sft(
        run=parts.Run(name="sft", root=str(options.root), seed=options.seed, device=options.device),
        model=parts.Model(path=options.model, chat_template=str(options.root / "template.jinja")),
        data=(Conversations(source=str(options.root / "sft.jsonl")),),
        steps=options.sft_steps,
        batch_size=16,
        max_length=1024,
        optimizer=parts.Optimizer(lr=1e-4, warmup=10, schedule="linear"),
        checkpoints=parts.Checkpoints(every=options.sft_steps),
    )


def rl_recipe(options: argparse.Namespace) -> Rl:
    test = str(options.root / "test.jsonl")
    return Rl(
        run=parts.Run(
            name=f"rl-{options.credit}", root=str(options.root), seed=options.seed, device=options.device
        ),
        model=parts.Model(path=str(options.root / "sft" / "checkpoints" / f"step_{options.sft_steps}")),
        data=(ProblemSource(source=str(options.root / "train.jsonl")),),
        eval=(
            HeldOut(source=test, name="greedy"),
            HeldOut(source=test, name="drawn", samples=4),
        ),
        eval_every=options.steps // 2,
        steps=options.steps,
        prompts_per_step=32,
        samples_per_prompt=8,
        max_prompt_tokens=MAX_PROMPT,
        sampling=parts.Sampling(max_new_tokens=MAX_NEW),
        environment=Environment(
            tools=("search",),
            corpus=str(corpus_of(options)),
            instructions=False,  # the cold start has taught how to call
            max_turns=MAX_TURNS,
            max_result_chars=RESULT_CHARS,
        ),
        credit=Credit(kind=options.credit),
        reward=Reward(grader="qa"),
        optimizer=parts.Optimizer(lr=1e-5, warmup=2),
        checkpoints=parts.Checkpoints(every=10),
    )


if __name__ == "__main__":
    main()
