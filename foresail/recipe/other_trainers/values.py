"""Other trainers' values for our keys: their meaning here, by key and value in lower case.

stage = "grpo"      that is stage = "rl": GRPO is …
sampling.top_k = -1  0 keeps all tokens
"""

from __future__ import annotations

from collections.abc import Collection

from foresail.recipe.other_trainers.answers import Row, choose, only_in, plain
from foresail.recipe.other_trainers.sampling import OWN_ENGINE
from foresail.recipe.other_trainers.training import NOT_QUANTISED

GRPO = 'GRPO is `advantage.kind` = "grpo" with `loss.kind` = "clip"; both are the defaults'
DAPO = (
    'DAPO is what the defaults are: `advantage.kind` = "grpo", `loss.kind` = "clip" with `loss.clip_high` 0.28, '
    "token-mean"
)
DR_GRPO = (
    'Dr. GRPO is `advantage.kind` = "dr_grpo" with `loss.kind` = "clip" and `loss.aggregation` = "constant"'
)
PPO = 'PPO is `advantage.kind` = "gae" with a [`critic`] and `loss.kind` = "clip"'
RLOO = 'RLOO is `advantage.kind` = "rloo" with `loss.kind` = "clip"'
REINFORCE = (
    'REINFORCE++ is `advantage.kind` = "reinforce++" (or "reinforce++_baseline") with `loss.kind` = "clip"'
)
SAPO = 'SAPO is `loss.kind` = "sapo" with `advantage.kind` = "grpo"'
GDPO = 'GDPO is `advantage.kind` = "gdpo", with several rewards: `reward.terms`'
OPSD = 'self-distillation with a told answer is `credit.kind` = "opsd"'
GSPO = 'GSPO is `loss.kind` = "gspo" with `advantage.kind` = "grpo"'
CISPO = 'CISPO is `loss.kind` = "cispo" with `advantage.kind` = "grpo"'
ALGORITHMS = {
    "bnpo": DAPO,
    "cispo": CISPO,
    "dapo": DAPO,
    "dr_grpo": DR_GRPO,
    "drgrpo": DR_GRPO,
    "gae": PPO,
    "gdpo": GDPO,
    "grpo": GRPO,
    "gspo": GSPO,
    "opsd": OPSD,
    "ppo": PPO,
    "reinforce": REINFORCE,
    "reinforce++": REINFORCE,
    "reinforce_plus_plus": REINFORCE,
    "reinforce_plus_plus_baseline": REINFORCE,
    "rloo": RLOO,
    "sapo": SAPO,
    "sdpo": OPSD,
}
NO_SUCH_PREFERENCES = (
    'of losses on preferences stage = "dpo" has loss.kind = "sigmoid", "sigmoid_norm", "ipo", "hinge", "robust" '
    'and "simpo"; loss.sft_weight adds a term that imitates the chosen answers'
)
ON_PAIRS = only_in("rl kto", 'that is a loss of preference pairs: stage = "dpo"')
STAGES: dict[str, Row] = {
    **{name: f'that is stage = "rl": {plain(sentence)}' for name, sentence in ALGORITHMS.items()},
    **{name: f'that is stage = "dpo" with loss.kind = "{name}"' for name in ("ipo", "simpo")},
    **dict.fromkeys(("cpo", "orpo"), NO_SUCH_PREFERENCES),
    **dict.fromkeys(
        ("rm", "reward", "reward_model", "reward_modeling"),
        'a reward model is trained by stage = "reward-model"',
    ),
    **dict.fromkeys(
        ("gkd", "minillm", "distillation", "opd"),
        'on-policy distillation is stage = "distill", with a [teacher]',
    ),
    **dict.fromkeys(
        ("online_dpo", "onlinedpo", "iterative_dpo"),
        'that is stage = "online-dpo": pairs of one\'s own samples, by rewards',
    ),
    **dict.fromkeys(
        ("raft", "rft", "rejection_sampling", "star"),
        "sample right solutions with `foresail data sample-solutions`, then imitate them with sft",
    ),
    "eval": "evaluation is a command, not a stage: foresail eval CHECKPOINT --data FILE",
    **dict.fromkeys(
        ("cpt", "continued_pretraining", "lm", "pretraining", "pt"),
        'next-token training on plain text is stage = "pretrain", on what `foresail data tokenize` makes',
    ),
    "rlhf": 'reinforcement learning is stage = "rl", with rewards that a function computes (reward.grader)',
    "rlvr": 'reinforcement learning with verifiable rewards is stage = "rl"',
}
ENGINES: dict[str, Row] = dict.fromkeys(
    ("hf", "huggingface", "sglang", "tensorrt", "transformers", "trtllm", "vllm"), OWN_ENGINE
)
ALL_RECORDS: dict[str, Row] = {"-1": "leave it out for all"}
VALUES: dict[str, dict[str, Row]] = {
    "loss.kind": {
        **{
            name: (text, only_in("dpo kto online-dpo", 'that is stage = "rl"'))
            for name, text in ALGORITHMS.items()
        },
        "vanilla": only_in("rl", 'that is `loss.kind` = "clip"'),
        **dict.fromkeys(("dpo", "hinge", "ipo", "orpo", "robust", "sigmoid", "simpo"), ON_PAIRS),
        "kto": only_in("rl dpo online-dpo", 'that is a stage of its own: stage = "kto"'),
    },
    "advantage.kind": {
        **ALGORITHMS,
        "gigpo": "there are no step-wise groups here",
        "opo": RLOO,
        "remax": RLOO,
    },
    "loss.aggregation": {
        "grpo": 'what TRL calls so is "seq-mean-token-mean"',
        "dapo": 'what TRL calls so is "token-mean"',
        "bnpo": 'what TRL calls so is "token-mean"',
        "dr_grpo": 'what TRL calls so is "constant"',
        "seq-mean-token-sum-norm": 'what verl calls so is "constant"',
    },
    "loss.kl": {
        "kl": 'verl\'s "kl" is "k1"',
        "low_var_kl": 'verl\'s "low_var_kl" is "k3"',
        "k2": "k2 is not there; k3 is never negative either",
        "mse": "mse (k2) is not there; k3 is never negative either",
    },
    "run.device": {
        "gpu": 'write "cuda"',
        "cuda:0": 'write "cuda", and choose the card with CUDA_VISIBLE_DEVICES=0',
        "cuda:1": 'write "cuda", and choose the card with CUDA_VISIBLE_DEVICES=1',
        "mps": 'Apple\'s GPUs are not used; write "cpu"',
    },
    "run.wandb": {"true": "name the project"},
    "model.dtype": {
        "bf16": 'write "bfloat16"',
        "fp16": 'write "float16"',
        "half": 'write "float16"',
        "fp32": 'write "float32"',
        "float": 'write "float32"',
        **dict.fromkeys(("int8", "4bit", "8bit"), NOT_QUANTISED),
    },
    "optimizer.name": dict.fromkeys(
        ("adam", "adamw_torch", "adamw_torch_fused", "adamw_hf"), 'write "adamw"'
    ),
    "optimizer.schedule": {
        "constant_with_warmup": 'that is "constant" with `optimizer.warmup`',
        "cosine_with_min_lr": 'that is "cosine" with `optimizer.final_share`',
        "inverse_sqrt": "it is not there; cosine and linear with final_share are",
        "wsd": "it is not there; cosine and linear with final_share are",
    },
    "sampling.top_k": {"-1": "0 keeps all tokens"},
    "data.limit": ALL_RECORDS,
    "eval.limit": ALL_RECORDS,
    "eval_every": {"-1": "0 is never"},
    "checkpoints.every": {"-1": "leave it out: then the clock says when, and the last step is saved anyway"},
    "checkpoints.keep": {"-1": "there is always a limit; set it high"},
    "engine": ENGINES,
    "rollout": ENGINES,
    "rollout.backend": ENGINES,
}


def value_note(key: str, value: object, stage: str, known: Collection[str]) -> str | None:
    """The advice for another trainer's value: ("run.device", "gpu", …) -> 'write "cuda"'."""
    row = VALUES.get(key, {}).get(str(value).lower())
    text = None if row is None else choose(row, stage, known)
    return None if text is None else plain(text)


def other_stage(name: object) -> str | None:
    """other_stage("grpo") -> 'that is stage = "rl": GRPO is …'."""
    row = STAGES.get(name.lower()) if isinstance(name, str) else None
    return row if isinstance(row, str) else None
