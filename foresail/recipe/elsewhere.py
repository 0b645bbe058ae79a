"""What people bring from TRL, verl, OpenRLHF and their kin: names of keys and of values, and what they are here.

`NAMES` are other names of the same thing. Where the meaning differs (another unit, another value, two keys for
one), a name alone would lead astray: `KEYS` and `VALUES` hold a sentence instead.
"""

from __future__ import annotations

NAMES = {
    "actor_learning_rate": "optimizer.lr",
    "adam_beta1": "optimizer.beta1",
    "adam_beta2": "optimizer.beta2",
    "adam_epsilon": "optimizer.eps",
    "adv_estimator": "advantage.kind",
    "advantage_estimator": "advantage.kind",
    "beta": "loss.kl_weight",
    "clip_ratio_c": "loss.dual_clip",
    "clip_ratio_high": "loss.clip_high",
    "clip_ratio_low": "loss.clip_low",
    "cliprange_value": "critic.clip",
    "context_parallel_size": "cluster.context",
    "cp_size": "cluster.context",
    "critic.model.path": "critic.path",
    "critic.optim.lr": "critic.optimizer.lr",
    "critic_learning_rate": "critic.optimizer.lr",
    "critic_pretrain": "critic.path",
    "critic_warmup": "critic.warmup_steps",
    "delta": "loss.dual_clip",
    "detach_encoder": "mtp.detach",
    "dynamic_filtering": "dynamic_sampling.enabled",
    "stop_strings": "sampling.stop",
    "early_stopping_patience": "checkpoints.patience",
    "enable_gradient_checkpointing": "recompute",
    "eps_clip_high": "loss.clip_high",
    "epsilon_high": "loss.clip_high",
    "eval_steps": "eval_every",
    "experiment_name": "run.name",
    "filter_groups": "dynamic_sampling.enabled",
    "generate_max_len": "sampling.max_new_tokens",
    "grad_clip": "optimizer.clip_norm",
    "gradient_checkpointing": "recompute",
    "gradient_clipping": "optimizer.clip_norm",
    "kl_estimator": "loss.kl",
    "kl_loss_coef": "loss.kl_weight",
    "kl_loss_type": "loss.kl",
    "learning_rate": "optimizer.lr",
    "learningrate": "optimizer.lr",
    "lora_alpha": "lora.alpha",
    "lora_r": "lora.rank",
    "lora_rank": "lora.rank",
    "lora_target_modules": "lora.targets",
    "loss_agg_mode": "loss.aggregation",
    "moe_aux_loss_coeff": "router.balance",
    "moe_router_bias_update_rate": "router.correction_rate",
    "moe_z_loss_coeff": "router.z",
    "dpo_label_smoothing": "loss.label_smoothing",
    "lr_scheduler_type": "optimizer.schedule",
    "lr_warmup_steps": "optimizer.warmup",
    "max_actor_ckpt_to_keep": "checkpoints.keep",
    "max_async_level": "rollout.staleness",
    "max_completion_length": "sampling.max_new_tokens",
    "max_grad_norm": "optimizer.clip_norm",
    "max_head_offpolicyness": "rollout.staleness",
    "max_num_gen_batches": "dynamic_sampling.max_rounds",
    "max_num_seqs": "engine.max_running",
    "max_prompt_length": "max_prompt_tokens",
    "max_response_length": "sampling.max_new_tokens",
    "max_seq_length": "max_length",
    "max_steps": "steps",
    "metric_for_best_model": "checkpoints.best",
    "model_name_or_path": "model.path",
    "mtp_loss_scaling_factor": "mtp.weight",
    "n": "samples_per_prompt",
    "n_samples": "samples_per_prompt",
    "n_samples_per_prompt": "samples_per_prompt",
    "neftune_noise_alpha": "neftune_alpha",
    "num_generations": "samples_per_prompt",
    "num_iterations": "passes_per_step",
    "num_nextn_predict_layers": "model.shape.mtp",
    "num_ppo_epochs": "passes_per_step",
    "overlong_buffer.len": "reward.overlong_buffer",
    "overlong_buffer.penalty_factor": "reward.overlong_factor",
    "ppo_epochs": "passes_per_step",
    "ppo_max_token_len_per_gpu": "micro_batch_tokens",
    "pretrain": "model.path",
    "project_name": "run.wandb",
    "pref_beta": "loss.beta",
    "pref_ftx": "loss.sft_weight",
    "precompute_ref_log_probs": "reference.kept",
    "prompt_data": "data.source",
    "prompt_max_len": "max_prompt_tokens",
    "center_rewards_coefficient": "center",
    "reward.kind": "reward.grader",
    "reward_fn": "reward.grader",
    "reward_funcs": "reward.grader",
    "reward_model_path": "reward.model.path",
    "reward_weights": "reward.terms",
    "ref_model": "reference.path",
    "ref_pretrain": "reference.path",
    "ring_attn_size": "cluster.context",
    "roles_to_train": "data.roles",
    "rollout_batch_size": "prompts_per_step",
    "rollout_is_threshold": "loss.importance_cap",
    "run_name": "run.name",
    "save_freq": "checkpoints.every",
    "save_steps": "checkpoints.every",
    "save_total_limit": "checkpoints.keep",
    "sequence_parallel_size": "cluster.context",
    "system_prompt": "data.system",
    "target_modules": "lora.targets",
    "test_freq": "eval_every",
    "rpo_alpha": "loss.sft_weight",
    "simpo_gamma": "loss.gamma",
    "tis_imp_ratio_cap": "loss.importance_cap",
    "teacher_model_name_or_path": "teacher.path",
    "torch_dtype": "model.dtype",
    "total_training_steps": "steps",
    "train_files": "data.source",
    "ulysses_sequence_parallel_size": "cluster.context",
    "val_files": "eval.source",
    "value_clip": "critic.clip",
    "vllm_importance_sampling_cap": "loss.importance_cap",
    "wandb_project": "run.wandb",
    "warmup_steps": "optimizer.warmup",
}

EPOCHS = (
    "a run is counted in steps: set steps to epochs x records / records per step (prompts_per_step in rl, "
    "batch_size in sft)"
)
MICRO_BATCHES = (
    "micro-batches are counted in tokens, not in samples, and gradients are summed over all of an update's: "
    "micro_batch_tokens sets how many tokens are computed at once; what an update learns from is set by "
    "prompts_per_step and updates_per_step in rl, batch_size in sft"
)
BOTH_SIDES = (
    "both sides of the ratio have a key here: loss.clip_low and loss.clip_high (equal ones: PPO's clip)"
)
OWN_ENGINE = (
    'the engine is Foresail\'s own and runs in the same process on the same weights; rollout.backend = "vllm" '
    "takes vLLM instead, others there are none; [engine] and [rollout] hold the settings"
)
RANKS = "cluster.ranks counts the processes that train the model together, a GPU each, by FSDP2"
NO_TENSOR_PARALLEL = (
    "matrices are not split over devices; cluster.ranks shards weights and states by FSDP2 instead"
)
KL_IN_LOSS = (
    "the KL term stands in the loss, not in the reward: loss.kl_weight is its weight, loss.kl its estimator"
)
FOLDER = "a run lies in the folder run.root/run.name; set these two"
PAIRS = 'low-rank pairs are trained where the recipe has a table [lora] ("lora.rank=16" as an override)'
STD = 'advantages over the group\'s spread are advantage.kind = "grpo", without it advantage.kind = "dr_grpo"'

NO_MTP = "all stages but reward-model take [mtp]; a reward model has no MTP layers: remove it"
NO_BONUS = "there is no entropy bonus; loss.clip_high above loss.clip_low keeps entropy up (DAPO's way)"
NOT_QUANTISED = (
    'weights are trained as they are, not quantised; [lora] and optimizer.states = "8bit" save memory'
)
PUSH = "a finished run is pushed by a command: foresail export RUN FOLDER --push OWNER/NAME"
SHUFFLED = "data is always shuffled; the order follows from run.seed"

# By the key's last names: a sentence.
KEYS = {
    "router_aux_loss_coef": (
        "router.balance weighs the loss of every layer, over the number of active experts: for the same pull set "
        "it to router_aux_loss_coef x active experts / layers"
    ),
    "accumulate_steps": MICRO_BATCHES,
    "algorithm": 'it is put together from advantage.kind ("grpo", "rloo", "gae", …) and loss.kind ("clip", …)',
    "bf16": 'bf16 = true is model.dtype = "bfloat16"',
    "clip_ratio": BOTH_SIDES,
    "cliprange": BOTH_SIDES,
    "custom_reward_function.name": 'reward.grader names file and function at once: "rewards.py:score"',
    "custom_reward_function.path": 'reward.grader names file and function at once: "rewards.py:score"',
    "dataset_name": "data.source takes a file (.jsonl, .parquet) or a generator; fetch a hub's dataset first",
    "deepspeed": RANKS,
    "default_local_dir": FOLDER,
    "entropy_coef": NO_BONUS,
    "entropy_coeff": NO_BONUS,
    "eps_clip": BOTH_SIDES,
    "epsilon": BOTH_SIDES,
    "fp16": 'fp16 = true is model.dtype = "float16"',
    "fsdp": RANKS,
    "gpu_memory_utilization": "the cache takes what all samples need, or engine.kv_tokens tokens where that is set",
    "gradient_accumulation_steps": MICRO_BATCHES,
    "importance_sampling_level": 'level "token" is loss.kind = "clip", level "sequence" is loss.kind = "gspo"',
    "init_kl_coef": KL_IN_LOSS,
    "kl_coef": KL_IN_LOSS,
    "kl_penalty": KL_IN_LOSS,
    "load_in_4bit": NOT_QUANTISED,
    "load_in_8bit": NOT_QUANTISED,
    "lora_dropout": "low-rank pairs have no dropout; leave it out",
    "loss_mode": '"vanilla" is loss.kind = "clip"; "gspo" and "cispo" are values of loss.kind as well',
    "loss_type": (
        'of TRL\'s values "grpo" is loss.aggregation = "seq-mean-token-mean", "dapo" and "bnpo" are "token-mean", '
        '"dr_grpo" is "constant"; "cispo" is loss.kind = "cispo"; those of DPOTrainer ("sigmoid", "ipo", "hinge", '
        '"robust", "sigmoid_norm") are loss.kind of stage = "dpo"'
    ),
    "mask_truncated_completions": "a response cut at the limit counts as it is graded; see reward.overlong_buffer",
    "micro_train_batch_size": MICRO_BATCHES,
    "mini_batch_size": "updates_per_step counts updates, not samples: mini-batches per step",
    "n_gpus_per_node": RANKS,
    "nnodes": "the ranks of a run are on one host; torchrun may start them on several",
    "norm_adv_by_std_in_grpo": STD,
    "num_episodes": EPOCHS,
    "num_epochs": EPOCHS,
    "num_train_epochs": EPOCHS,
    "optim": 'the optimiser is AdamW, or Muon with optimizer.name = "muon"; AdamW\'s moments take a byte each with '
    'optimizer.states = "8bit"',
    "output_dir": FOLDER,
    "assistant_only_loss": "only the assistant's words have a loss, unless data.roles names others",
    "completion_only_loss": "only the assistant's words have a loss, unless data.roles names others",
    "packing": "conversations are always packed, without padding and without seeing each other",
    "packing_strategy": "conversations are always packed, without padding and without seeing each other",
    "padding_free": "conversations are always packed, without padding and without seeing each other",
    "train_on_inputs": 'data.roles = ["assistant", "user"] gives the user\'s words a loss as well',
    "peft_config": PAIRS,
    "per_device_eval_batch_size": "evaluation takes as many samples at once as engine.max_running allows",
    "per_device_train_batch_size": MICRO_BATCHES,
    "ppo_micro_batch_size": MICRO_BATCHES,
    "ppo_micro_batch_size_per_gpu": MICRO_BATCHES,
    "ppo_mini_batch_size": (
        "updates_per_step counts updates, not samples: train_batch_size 256 with ppo_mini_batch_size 64 is "
        "prompts_per_step = 256 with updates_per_step = 4"
    ),
    "remote_rm_url": 'reward.grader = "file.py:function" names a function, which may call a URL itself',
    "report_to": 'run.wandb = "project" logs to Weights & Biases; TensorBoard files are always written',
    "rollout.name": OWN_ENGINE,
    "scale_rewards": STD,
    "tensor_model_parallel_size": NO_TENSOR_PARALLEL,
    "tensor_parallel_size": NO_TENSOR_PARALLEL,
    "total_epochs": EPOCHS,
    "train_batch_size": (
        "verl's train_batch_size counts prompts: prompts_per_step; OpenRLHF's counts the samples of one update: "
        "prompts_per_step x samples_per_prompt / updates_per_step"
    ),
    "use_kl_in_reward": KL_IN_LOSS,
    "use_kl_loss": "the KL term is there where loss.kl_weight is above 0",
    "use_peft": PAIRS,
    "use_vllm": OWN_ENGINE,
    "use_wandb": 'run.wandb = "project" logs to Weights & Biases',
    "vllm_mode": OWN_ENGINE,
    "warmup_ratio": "optimizer.warmup counts updates: ratio x all updates of the run",
    "zero_stage": RANKS,
    "advantage_normalization": STD,
    "batch_size": (
        "prompts_per_step counts the problems of a step, samples_per_prompt the responses to each, "
        "micro_batch_tokens the tokens computed at once"
    ),
    "data_shuffle": SHUFFLED,
    "entropy_weight": NO_BONUS,
    "epochs": EPOCHS,
    "greater_is_better": 'checkpoints.best_is = "max" or "min"',
    "hub_model_id": PUSH,
    "load_best_model_at_end": 'checkpoints.best = "METRIC" keeps the best step, which checkpoints/best names',
    "logging_steps": "every step is logged",
    "max_epochs": EPOCHS,
    "micro_rollout_batch_size": "engine.max_running counts the samples decoded at once",
    "num_gpus": RANKS,
    "push_to_hub": PUSH,
    "rollout_is": "loss.importance_cap = 2.0 or the like turns truncated importance sampling on",
    "shuffle": SHUFFLED,
    "val_batch_size": "evaluation takes as many samples at once as engine.max_running allows",
    "mtp": NO_MTP,
    "mtp.change_at": NO_MTP,
    "mtp.detach": NO_MTP,
    "mtp.final_weight": NO_MTP,
    "mtp.train": NO_MTP,
    "mtp.weight": NO_MTP,
    "val_kwargs.n": "samples_per_prompt counts responses in training; of held-out problems see [eval]",
}

GRPO = 'GRPO is advantage.kind = "grpo" with loss.kind = "clip"; both are the defaults'
DAPO = 'DAPO is what the defaults are: advantage.kind = "grpo", loss.kind = "clip" with clip_high 0.28, token-mean'
DR_GRPO = 'Dr. GRPO is advantage.kind = "dr_grpo" with loss.kind = "clip" and loss.aggregation = "constant"'
PPO = 'PPO is advantage.kind = "gae" with a [critic] and loss.kind = "clip"'
RLOO = 'RLOO is advantage.kind = "rloo" with loss.kind = "clip"'
REINFORCE = (
    'REINFORCE++ is advantage.kind = "reinforce++" (or "reinforce++_baseline") with loss.kind = "clip"'
)
GSPO = 'GSPO is loss.kind = "gspo" with advantage.kind = "grpo"'
CISPO = 'CISPO is loss.kind = "cispo" with advantage.kind = "grpo"'
ALGORITHMS = {
    "bnpo": DAPO,
    "cispo": CISPO,
    "dapo": DAPO,
    "dr_grpo": DR_GRPO,
    "drgrpo": DR_GRPO,
    "gae": PPO,
    "grpo": GRPO,
    "gspo": GSPO,
    "ppo": PPO,
    "reinforce": REINFORCE,
    "reinforce++": REINFORCE,
    "reinforce_plus_plus": REINFORCE,
    "reinforce_plus_plus_baseline": REINFORCE,
    "rloo": RLOO,
}
NO_SUCH_PREFERENCES = (
    'of losses on preferences stage = "dpo" has loss.kind = "sigmoid", "sigmoid_norm", "ipo", "hinge", "robust" '
    'and "simpo"; loss.sft_weight adds a term that imitates the chosen answers'
)
STAGES = {
    **{name: f'that is stage = "rl": {sentence}' for name, sentence in ALGORITHMS.items()},
    **{name: f'that is stage = "dpo" with loss.kind = "{name}"' for name in ("ipo", "simpo")},
    **dict.fromkeys(("cpo", "kto", "orpo"), NO_SUCH_PREFERENCES),
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
ENGINES = dict.fromkeys(
    ("hf", "huggingface", "sglang", "tensorrt", "transformers", "trtllm", "vllm"), OWN_ENGINE
)
# By key, then by value: a sentence.
VALUES: dict[str, dict[str, str]] = {
    "stage": STAGES,
    "loss.kind": {**ALGORITHMS, "vanilla": 'that is loss.kind = "clip"'},
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
    "model.dtype": {
        "bf16": 'write "bfloat16"',
        "fp16": 'write "float16"',
        "half": 'write "float16"',
        "fp32": 'write "float32"',
        "float": 'write "float32"',
        "int8": NOT_QUANTISED,
        "4bit": NOT_QUANTISED,
        "8bit": NOT_QUANTISED,
    },
    "optimizer.schedule": {
        "constant_with_warmup": 'that is "constant" with optimizer.warmup',
        "cosine_with_min_lr": 'that is "cosine" with optimizer.final_share',
        "inverse_sqrt": "it is not there; cosine and linear with final_share are",
        "wsd": "it is not there; cosine and linear with final_share are",
    },
    "engine": ENGINES,
    "rollout": ENGINES,
    "rollout.backend": ENGINES,
}


def sentence_for_key(path: str) -> str | None:
    """Of a key known elsewhere whose meaning is another here: "trainer.total_epochs" -> "a run is counted …"."""
    return found_under(path, KEYS)


def name_for_key(path: str) -> str | None:
    """Our key of the same meaning: "actor_rollout_ref.rollout.n" -> "samples_per_prompt"."""
    return found_under(path, NAMES)


def found_under(path: str, table: dict[str, str]) -> str | None:
    parts = path.split(".")
    names = (".".join(parts[first:]) for first in range(len(parts)))
    return next((table[name] for name in names if name in table), None)


def sentence_for_value(key: str, value: object) -> str | None:
    """What a value of elsewhere is here: ("run.device", "gpu") -> 'write "cuda"'."""
    return VALUES.get(key, {}).get(value.lower()) if isinstance(value, str) else None
