"""MTP on reasoning text: a small model is trained with MTP layers, then drafts for itself.

1. A fresh model and one MTP layer learn together (weight 0.3, then 0.1), from word problems with worked solutions:
   made here, or a JSONL file with question and answer, GSM8K's say.
2. The layer is copied to three, and the two copies are tuned with model and first layer frozen.
3. Acceptance of each layer's token on the model's own outputs at temperature 1, given that the tokens before it
   were right: drawn with the token's own noise, as the engine drafts, and beside it the likeliest token.
4. Decode speed with and without drafts at several batch sizes; the tokens must be the same.

    python benchmarks/proofs/mtp.py --size tiny    # CPU, under a minute
    python benchmarks/proofs/mtp.py --size 1M      # CPU, ten minutes
    python benchmarks/proofs/mtp.py --size 250M --data shared/data/math/gsm8k/train.jsonl.gz
The last line is JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key, uniforms
from foresail.engine.request import Completion, Request
from foresail.engine.sampling import inverse_cdf
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, empty_model
from foresail.model.mtp import MtpHeads
from foresail.model.readouts import logits
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Mtp, Optimizer, Sampling
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.auxiliary.mtp import choose_trained, mtp_at
from foresail.train.learner import Learner
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.optim.schedule import learning_rate
from foresail.train.update.step import token_loss, train_step

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"hidden_size": 64, "intermediate_size": 160, "num_layers": 3, "num_heads": 4, "num_kv_heads": 2},
    "1M": {"hidden_size": 128, "intermediate_size": 320, "num_layers": 4, "num_heads": 4, "num_kv_heads": 2},
    "30M": {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_layers": 8,
        "num_heads": 8,
        "num_kv_heads": 2,
    },
    "250M": {
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_layers": 18,
        "num_heads": 16,
        "num_kv_heads": 4,
    },
}
WORK = {  # problems, vocabulary, steps, tuning steps, tokens a step, learning rate
    "tiny": (1_000, 400, 40, 15, 2_048, 6e-3),
    "1M": (6_000, 600, 250, 100, 6_144, 5e-3),
    "30M": (40_000, 4_096, 400, 120, 65_536, 1.5e-3),
    "250M": (60_000, 8_192, 500, 150, 65_536, 8e-4),
}
LAYERS = 3
MAX_LENGTH = 512
Figures = dict[str, Any]


def main() -> None:
    options = read_options()
    device = torch.device(options.device)
    texts = read_texts(options.data) if options.data else [*word_problems(WORK[options.size][0])]
    tokenizer = train_bpe((f"{a}\n{b}" for a, b in texts), vocab_size=WORK[options.size][1])
    held_out, texts = texts[:64], texts[64:]
    model, trained = train_or_load(texts, tokenizer, options, device)
    if options.only_train:
        return
    requests = make_requests(held_out, tokenizer, options.new_tokens)
    warm(model, requests)
    completions = generate(model, requests, drafts=False)[0]
    result: Figures = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "size": options.size,
        "parameters": model.shape.without_mtp().num_parameters,
        **trained,
        **acceptance(model, completions),
        "example": tokenizer.decode(list(completions[0].ids))[:300],
        "speed": {str(batch): speed(model, requests, batch) for batch in options.batches},
    }
    print(json.dumps(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=list(SIZES), default="tiny")
    parser.add_argument(
        "--data", type=Path, help="JSONL with question and answer; default: problems made here"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, help="of training; default: by size")
    parser.add_argument("--tune-steps", type=int, help="of the added layers; default: by size")
    parser.add_argument("--keep", type=Path, help="file for the trained model; one that is there is measured")
    parser.add_argument("--only-train", action="store_true", help="for now; --keep has it for the rest")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64])
    return parser.parse_args()


# Text.


def read_texts(file: Path) -> list[tuple[str, str]]:
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(0).shuffle(rows)
    return [(row["question"], row["answer"]) for row in rows]


def word_problems(count: int) -> Iterator[tuple[str, str]]:
    """Three to six steps of arithmetic in sentences, and a solution that goes through them one by one."""
    numbers = random.Random(0)
    names = ["Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo"]
    things = ["apples", "books", "coins", "shells", "stamps", "pens", "cards", "marbles"]
    for _ in range(count):
        name, thing, has = numbers.choice(names), numbers.choice(things), numbers.randint(2, 30)
        story, steps = [f"{name} has {has} {thing}."], []
        for _ in range(numbers.randint(3, 6)):
            kind, amount = numbers.choice(["buys", "loses", "doubles"]), numbers.randint(1, 20)
            if kind == "loses" and amount > has:
                kind = "buys"
            if kind == "buys":
                story.append(f"Then {name} buys {amount} more.")
                steps.append(f"After buying {amount}, there are {has} + {amount} = {has + amount} {thing}.")
                has += amount
            elif kind == "loses":
                story.append(f"{name} gives {amount} away.")
                steps.append(
                    f"After giving {amount} away, there are {has} - {amount} = {has - amount} {thing}."
                )
                has -= amount
            else:
                story.append(f"{name} finds as many again.")
                steps.append(f"Finding as many again makes {has} * 2 = {2 * has} {thing}.")
                has *= 2
        opening = numbers.choice(["Let us go step by step.", f"We follow {name}.", "First the numbers."])
        question = " ".join([*story, f"How many {thing} does {name} have?"])
        yield question, " ".join([opening, *steps, f"So the answer is \\boxed{{{has}}}."])


def make_sequences(texts: list[tuple[str, str]], tokenizer: Tokenizer) -> list[TrainSequence]:
    """Question and answer, both learned."""
    sequences = []
    for question, answer in texts:
        ids = [*tokenizer.encode(f"{question}\n{answer}"), tokenizer.eos_ids[0]][:MAX_LENGTH]
        sequences.append(TrainSequence(ids=ids, loss_mask=[0] + [1] * (len(ids) - 1)))
    return sequences


# Training.


def train_or_load(
    texts: list[tuple[str, str]], tokenizer: Tokenizer, options: argparse.Namespace, device: torch.device
) -> tuple[Decoder, Figures]:
    """The measured phase wants a quiet machine, this one does not: so it may be done before."""
    size = SIZES[options.size]
    shape = ModelShape(
        **size,
        family="qwen3",
        qk_norm=True,
        vocab_size=tokenizer.vocab_size,
        head_dim=size["hidden_size"] // size["num_heads"],
        max_context=2 * MAX_LENGTH,
        mtp=1,
    )
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    if options.keep is not None and options.keep.exists():
        weights, figures = torch.load(options.keep, map_location=device)
        model = empty_model(shape.model_copy(update={"mtp": LAYERS}), dtype=dtype, device=device)
        model.load_state_dict(weights, assign=True)
        return model.requires_grad_(False), figures
    model, figures = train(build_model(shape, seed=0, dtype=dtype, device=device), texts, tokenizer, options)
    if options.keep is not None:
        options.keep.parent.mkdir(parents=True, exist_ok=True)
        torch.save((model.state_dict(), figures), options.keep)
    return model, figures


def train(
    model: Decoder, texts: list[tuple[str, str]], tokenizer: Tokenizer, options: argparse.Namespace
) -> tuple[Decoder, Figures]:
    _, _, steps, tune_steps, tokens, rate = WORK[options.size]
    sequences = make_sequences(texts, tokenizer)
    figures: Figures = {}
    start = time.perf_counter()
    together = Mtp(weight=0.3, final_weight=0.1, change_at=0.4)
    figures["pretrained"] = learn(model, sequences, together, options.steps or steps, tokens, rate)
    model = extended(model)
    settings = Mtp(weight=1.0, train="added")
    figures["tuned"] = learn(model, sequences, settings, options.tune_steps or tune_steps, tokens, rate / 2)
    figures["train_seconds"] = round(time.perf_counter() - start, 1)
    return model.requires_grad_(False), figures


@torch.no_grad()
def extended(model: Decoder) -> Decoder:
    """As `foresail mtp extend`, in memory."""
    shape = model.shape.model_copy(update={"mtp": LAYERS})
    more = empty_model(shape, dtype=model.dtype, device=model.device)
    more.load_state_dict(model.state_dict(), strict=False, assign=True)
    for layer in more.mtp[1:]:
        layer.load_state_dict(model.mtp[0].state_dict())
    return more


def learn(
    model: Decoder, sequences: list[TrainSequence], settings: Mtp, steps: int, tokens: int, rate: float
) -> Figures:
    choose_trained(model, settings)
    optimizer = Optimizer(lr=rate, warmup=max(1, steps // 20), schedule="cosine", final_share=0.1)
    learner = Learner(name="policy", model=model, optimizer=build_optimizer(model, optimizer))
    order, metrics, place = random.Random(1), {}, 0
    for step in range(1, steps + 1):
        chosen: list[TrainSequence] = []
        while sum(len(sequence.ids) for sequence in chosen) < tokens:
            if place == 0:
                order.shuffle(sequences)
            chosen.append(sequences[place])
            place = (place + 1) % len(sequences)
        weights = token_weights([sum(sequence.loss_mask) for sequence in chosen], "token-mean", MAX_LENGTH)
        batches = pack(chosen, weights, max_tokens=16_384, device=model.device)
        loss = partial(token_loss, loss=sft_loss, mtp=mtp_at(settings, step / steps))
        metrics = train_step(learner, batches, loss, learning_rate=learning_rate(step, steps, optimizer))
    names = [name for name in metrics if name == "sft/nll" or name.startswith("mtp/")]
    return {"steps": steps} | {name: round(metrics[name], 4) for name in names}


# Drafting.


def make_requests(texts: list[tuple[str, str]], tokenizer: Tokenizer, new_tokens: int) -> list[Request]:
    return [
        Request(
            id=str(number),
            prompt=tuple(tokenizer.encode(f"{question}\n")[-MAX_LENGTH:]),
            key=noise_key(0, 0, "benchmark", number),
            sampling=Sampling(temperature=1.0, max_new_tokens=new_tokens),
            stop_ids=(tokenizer.eos_ids[0],),
        )
        for number, (question, _) in enumerate(texts)
    ]


def open_engine(model: Decoder, batch: int, *, drafts: bool) -> Engine:
    pages = batch * (2 * MAX_LENGTH // 16 + 2)
    return Engine(model, num_pages=pages, max_running=batch, mtp=drafts)


def generate(
    model: Decoder, requests: list[Request], *, drafts: bool, engine: Engine | None = None
) -> tuple[list[Completion], float, int]:
    """Completions in order, seconds from the first decode step on, and steps."""
    engine = engine or open_engine(model, len(requests), drafts=drafts)
    for request in requests:
        engine.add(request)
    if drafts:
        engine.ask_for_drafts()
    completions = {
        completion.request.id: completion for completion in engine.step()
    }  # prompts, and one token each
    synchronize(model)
    start, steps = time.perf_counter(), 1
    while engine.busy:
        for completion in engine.step(engine.unread_drafts() if drafts else None):
            completions[completion.request.id] = completion
        steps += 1
    synchronize(model)
    return [completions[request.id] for request in requests], time.perf_counter() - start, steps


def warm(model: Decoder, requests: list[Request]) -> None:
    """Kernels are compiled."""
    if model.device.type == "cuda":
        generate(model, requests[:2], drafts=True)


def speed(model: Decoder, requests: list[Request], batch: int) -> Figures:
    """Tokens a second in decode steps, the best of three runs; the first of an engine captures its graphs."""
    # without stop ids, so that the batch stays as large as it is
    some = [
        Request(id=r.id, prompt=r.prompt, key=r.key, sampling=r.sampling) for r in (requests * batch)[:batch]
    ]
    some = [
        Request(id=str(i), prompt=r.prompt, key=r.key + i, sampling=r.sampling) for i, r in enumerate(some)
    ]
    figures: Figures = {}
    texts = []
    for name, drafts in (("plain", False), ("mtp", True)):
        engine = open_engine(model, batch, drafts=drafts)
        runs = [generate(model, some, drafts=drafts, engine=engine) for _ in range(3)]
        tokens = sum(len(completion.ids) for completion in runs[0][0]) - batch
        figures[f"{name}_tokens_per_second"] = round(tokens / min(seconds for _, seconds, _ in runs), 1)
        figures[f"{name}_steps"] = runs[0][2]
        texts.append([list(completion.ids) for completion in runs[0][0]])
    figures["times"] = round(figures["mtp_tokens_per_second"] / figures["plain_tokens_per_second"], 3)
    figures["same_tokens"] = texts[0] == texts[1]
    return figures


@torch.no_grad()
def acceptance(model: Decoder, completions: list[Completion]) -> Figures:
    """By layer, over all drawn tokens: the share that its draw with the token's noise, or its best token, hits.

    Beside it what other noise would give: draws by Gumbel noise that layer and decoder share, and at the most, the
    mass that their distributions have in common.
    """
    names = ("acceptance", "acceptance_of_best_token", "acceptance_by_gumbel_noise", "most_acceptance")
    sums_LX, count = torch.zeros(LAYERS, len(names)), torch.zeros(LAYERS, 1)
    numbers = torch.Generator(model.device).manual_seed(0)
    for completion in completions:
        prompt = len(completion.request.prompt)
        ids_T = torch.tensor([*completion.request.prompt, *completion.ids], device=model.device)
        key = torch.tensor([completion.request.key], device=model.device)
        own_TV, *ahead = (logits_TV.float().log_softmax(-1) for logits_TV in predictions(model, ids_T))
        for number, logprobs_TV in enumerate(ahead):
            # place i predicts token i + number + 2; only drawn tokens count
            places = torch.arange(max(0, prompt - number - 2), len(ids_T) - number - 2, device=model.device)
            targets = places + number + 2
            theirs, ours = logprobs_TV[places], own_TV[targets - 1]
            tokens = inverse_cdf(theirs, uniforms(key.expand(len(places)), targets))
            noise = -torch.empty_like(ours).exponential_(generator=numbers).log()
            hits = (
                tokens == ids_T[targets],
                theirs.argmax(-1) == ids_T[targets],
                (theirs + noise).argmax(-1) == (ours + noise).argmax(-1),
                torch.minimum(theirs.exp(), ours.exp()).sum(-1),
            )
            sums_LX[number] += torch.stack([hit.float().sum() for hit in hits]).cpu()
            count[number] += len(places)
    shares_XL = (sums_LX / count).t().tolist()
    return {
        **{
            name: [round(share, 4) for share in shares] for name, shares in zip(names, shares_XL, strict=True)
        },
        "mean_logprob": round(
            sum(sum(c.logprobs) for c in completions) / sum(len(c.logprobs) for c in completions), 4
        ),
    }


def predictions(model: Decoder, ids_T: Tensor) -> list[Tensor]:
    """The decoder's logits, then those of each layer."""
    positions_T = torch.arange(len(ids_T), device=ids_T.device)
    attend = PackedAttention(torch.tensor([0, len(ids_T)]))

    def ahead(stream_TD: Tensor, heads: MtpHeads) -> list[Tensor]:
        predicted = []
        for number in range(len(heads)):
            stream_TD, normed_TD = heads.run(number, stream_TD, ids_T.roll(-number - 1), positions_T, attend)
            predicted.append(heads.read(normed_TD, logits))
        return predicted

    output = model(ids_T, positions_T, attend, logits, ahead=ahead)
    return [output.value, *output.ahead]


def synchronize(model: Decoder) -> None:
    if model.device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
