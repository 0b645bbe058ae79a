"""Other trainers' keys of steps, batches, optimiser, precision, LoRA, checkpoints and logs."""

from __future__ import annotations

from foresail.recipe.other_trainers.answers import Answer, Answers, Row, Table, only_in, same

# How long it lasts.
STEPS: Row = ("steps", "stages are counted in tokens: `stages.tokens` = steps x `stages.batch_tokens`")
EPOCHS: Answers = (
    "a run is counted in steps: `steps` = epochs x problems / `prompts_per_step`",
    "a run is counted in steps: `steps` = epochs x records / `batch_size`",
    "stages are counted in tokens: `stages.tokens` = epochs x tokens of the corpus",
)
EPISODES: Answer = (
    "a run is counted in steps: `steps` = episodes / (`prompts_per_step` x "
    "`samples_per_prompt`), where an episode "
    "is one sample"
)

# What an update learns from, and what is computed at once.
SAMPLES: Row = (
    "micro-batches are counted in tokens, not in samples: `micro_batch_tokens`; what a step learns from is "
    "`prompts_per_step` = per_device_train_batch_size x devices x gradient_accumulation_steps "
    "/ num_generations",
    "micro-batches are counted in tokens, not in samples: `micro_batch_tokens`; what an update "
    "learns from is "
    "`batch_size` = per_device_train_batch_size x devices x gradient_accumulation_steps",
    "`stages.batch_tokens` are the tokens of an update, and `micro_batch_tokens` those computed at once",
)
MICRO_BATCH: Row = (
    "micro-batches are counted in tokens, not in samples: `micro_batch_tokens`; their size changes no update"
)
ALWAYS_BY_TOKENS: Row = "micro-batches are always filled by tokens, up to `micro_batch_tokens`"
PER_UPDATE: Row = (
    "`prompts_per_step` counts problems and `updates_per_step` updates: the samples of one update are "
    "prompts_per_step x samples_per_prompt / updates_per_step",
    "batch_size",
    "`stages.batch_tokens` are the tokens of an update",
)
MINI_BATCH: Row = (
    "`updates_per_step` counts updates, not samples: train_batch_size 256 with ppo_mini_batch_size 64 is "
    "`prompts_per_step` = 256 with updates_per_step = 4"
)
PASSES: Row = (
    "`passes_per_step` counts passes, and `updates_per_step` the updates of all passes: mini-batches x passes"
)
PACKED: Row = "samples are always packed end to end, without padding and without seeing each other"

# The optimiser.
SCHEDULE: Row = ("stages.decay", "optimizer.schedule")
WARMUP: Row = (
    "`stages.warmup_tokens` counts tokens: warm-up steps x `stages.batch_tokens`",
    "optimizer.warmup",
)
WARMUP_RATIO: Row = (
    "`stages.warmup_tokens` counts tokens: ratio x `stages.tokens`",
    "`optimizer.warmup` counts updates: ratio x `steps` x `updates_per_step`",
    "`optimizer.warmup` counts updates: ratio x `steps`",
)
LEAST_RATE: Row = (
    "`stages.final_lr` is the rate itself: ratio x learning rate",
    "optimizer.final_share",
)
LEAST_OF_THESE: Row = (
    "of these there is the rate that is left at the end: `stages.final_lr`",
    "of these there is the share of the rate that is left at the end: `optimizer.final_share`",
)
LEAST_RATE_ITSELF: Row = (
    "stages.final_lr",
    "`optimizer.final_share` is a share: least rate / `optimizer.lr`",
)
OPTIMISER: Row = (
    'the optimiser is AdamW, or Muon with `optimizer.name` = "muon"; AdamW\'s moments take a byte each with '
    '`optimizer.states` = "8bit"'
)
BETAS: Row = "there is a key for each: `optimizer.beta1` and `optimizer.beta2`"

# Precision and memory.
NOT_QUANTISED: Row = (
    'weights are trained as they are, not quantised; [`lora`] and `optimizer.states` = "8bit" save memory'
)
OFFLOAD: Row = (
    "nothing of the trainer is moved to the host; [`lora`], `recompute` and `optimizer.states` "
    '= "8bit" save memory'
)
BUILT_IN_KERNELS: Row = (
    "kernels are part of the model's own code, and chosen by device and shape; leave it out"
)
PAIRS: Row = 'LoRA adapters are trained if the recipe has a table [`lora`] ("lora.rank=16" as an override)'

# Checkpoints and logs.
EVERY_SAVE: Row = "`checkpoints.every` counts the steps between checkpoints"
IN_A_CHECKPOINT: Row = (
    "weights are always saved as safetensors; `checkpoints.resumable` counts the newest that "
    "keep the optimiser's "
    "state as well"
)
RESUME: Row = "a run goes on by a command: foresail resume RUN"
FOLDER: Row = "a run lies in the folder `run.root`/`run.name`; set these two"
EVERY_STEP: Row = "every step is logged; leave it out"
NO_PROFILER = (
    "there is no profiler to set: a run's timeline.jsonl and metrics.jsonl say how long its phases took"
)
LOGGERS: Row = (
    '`run.wandb` = "project" logs to Weights & Biases; the terminal and TensorBoard files always have all'
)
SHOWN: Row = (
    "`show_samples` counts the steps between looks at two responses; every sample is kept in "
    "the run's rollouts/"
)
EVALUATIONS: Row = "`eval_every` counts the steps between evaluations"
HELD_OUT_BATCH: Row = (
    "evaluation takes as many samples at once as `engine.max_running` allows",
    "evaluation takes micro-batches of `micro_batch_tokens` tokens, as training does",
)
PUSH: Row = "a finished run is pushed by a command: foresail export RUN FOLDER --push OWNER/NAME"
SHUFFLED: Row = "data is always shuffled; the order follows from `run.seed`"

TRAINING: Table = {
    ".args": "every setting is a key of its own, and a keyword in Python; docs/recipe-keys.md lists all",
    # how long
    **same(
        "max_steps total_training_steps total_steps training_steps num_train_steps num_rollout train_iters",
        STEPS,
    ),
    **same("num_train_epochs total_epochs num_epochs max_epochs .epochs num_epoch", EPOCHS),
    **same("total_episodes num_episodes", (EPISODES, *EPOCHS[1:])),
    # what an update learns from
    **same("per_device_train_batch_size gradient_accumulation_steps accumulate_steps", SAMPLES),
    **same(
        "ppo_micro_batch_size ppo_micro_batch_size_per_gpu micro_train_batch_size micro_batch_size "
        "micro_batch_size_per_gpu train.micro_batch_size log_prob_micro_batch_size "
        "log_prob_micro_batch_size_per_gpu forward_micro_batch_size forward_micro_batch_size_per_gpu "
        "precompute_ref_batch_size local_rollout_forward_batch_size local_batch_size",
        MICRO_BATCH,
    ),
    **same(
        "ppo_max_token_len_per_gpu max_token_len_per_gpu max_tokens_per_gpu token_budget "
        "log_prob_max_token_len_per_gpu forward_max_token_len_per_gpu log_probs_max_tokens_per_gpu",
        "micro_batch_tokens",
    ),
    **same(
        "use_dynamic_bsz log_prob_use_dynamic_bsz use_dynamic_batch_size dynamic_batch_enable "
        "auto_find_batch_size",
        ALWAYS_BY_TOKENS,
    ),
    **same("global_batch_size train.batch_size", PER_UPDATE),
    ".train_batch_size": (
        "verl's counts prompts: `prompts_per_step`; OpenRLHF's counts the samples of one update: "
        "prompts_per_step x "
        "`samples_per_prompt` / `updates_per_step`",
        "batch_size",
    ),
    "data.train_batch_size": ("prompts_per_step", "batch_size"),
    ".batch_size": (
        "`prompts_per_step` counts the problems of a step, `samples_per_prompt` the responses to each, "
        "`micro_batch_tokens` the tokens computed at once",
        "`stages.batch_tokens` are the tokens of an update",
    ),
    **same("ppo_mini_batch_size mini_batch_size local_mini_batch_size", MINI_BATCH),
    **same("num_mini_batches num_steps_per_rollout", "updates_per_step"),
    **same("ppo_epochs num_ppo_epochs num_iterations", PASSES),
    "steps_per_generation": "`updates_per_step` counts updates: steps_per_generation / gradient_accumulation_steps",
    "generation_batch_size": (
        "a step draws `prompts_per_step` x `samples_per_prompt` samples: prompts_per_step = "
        "generation_batch_size / "
        "num_generations"
    ),
    **same(
        "packing packing_strategy packing_samples padding_free eval_packing use_remove_padding "
        "pad_to_multiple_of pad_token data_collator pad_mode padding_value group_by_length "
        "balance_batch balance_data balance_dp_token",
        PACKED,
    ),
    "neftune_noise_alpha": "neftune_alpha",
    # the optimiser
    **same("learning_rate actor_learning_rate optim.lr adam.lr", "optimizer.lr"),
    "muon.lr": (
        '`optimizer.lr` is Muon\'s too with `optimizer.name` = "muon"; `optimizer.matrix_rate` '
        "times it for matrices"
    ),
    "muon.momentum": "optimizer.momentum",
    **same("lr_scheduler_type lr_scheduler lr_decay_style warmup_style", SCHEDULE),
    **same("lr_scheduler_kwargs lr_scheduler_kwargs.*", LEAST_OF_THESE),
    "min_lr_ratio": LEAST_RATE,
    **same(".min_lr lr_scheduler_kwargs.min_lr optim.min_lr", LEAST_RATE_ITSELF),
    **same(".warmup_steps optimizer.warmup_steps num_warmup_steps lr_warmup_steps lr_warmup_iters", WARMUP),
    **same("warmup_ratio lr_warmup_ratio lr_warmup_steps_ratio lr_warmup_fraction", WARMUP_RATIO),
    **same(
        ".optim .optimizers optimizer.type optimizer.kind optim.optimizer optim_args optimizer_impl",
        OPTIMISER,
    ),
    **same("betas adam_betas", BETAS),
    "adam_beta1": "optimizer.beta1",
    "adam_beta2": "optimizer.beta2",
    **same("adam_epsilon adam_eps adam.eps optimizer.epsilon", "optimizer.eps"),
    **same("optim.weight_decay adam.weight_decay", "optimizer.weight_decay"),
    **same("max_grad_norm grad_clip clip_grad .max_norm gradient_clipping", "optimizer.clip_norm"),
    # precision and memory
    "bf16": 'bf16 = true is `model.dtype` = "bfloat16"',
    "fp16": 'fp16 = true is `model.dtype` = "float16"',
    **same("torch_dtype model_dtype param_dtype .dtype model_init_kwargs.dtype", "model.dtype"),
    "rollout.dtype": "samples are drawn by the trained weights themselves, in `model.dtype`",
    **same(
        "gradient_checkpointing enable_gradient_checkpointing gradient_checkpointing_enable "
        "recompute_granularity activation_checkpointing",
        "recompute",
    ),
    **same(
        "gradient_checkpointing_kwargs recompute_method recompute_num_layers",
        "`recompute` is true or false: every block, or none",
    ),
    **same(
        "activation_offloading enable_activation_offload param_offload optimizer_offload grad_offload "
        "offload_policy offload_params cpu_offload adam_offload offload offload_train "
        "optimizer_cpu_offload",
        OFFLOAD,
    ),
    **same(
        "load_in_4bit load_in_8bit quantization_config bnb_4bit_quant_type use_bnb_nested_quant "
        "bnb_4bit_quant_storage bnb_4bit_compute_dtype use_qlora",
        NOT_QUANTISED,
    ),
    **same(
        "attn_implementation attention_backend use_flash_attention_2 flash_attn use_liger_kernel "
        "use_liger use_liger_loss liger_kernel_config use_fused_kernels torch_compile "
        "torch_compile_backend torch_compile_mode use_torch_compile compile",
        BUILT_IN_KERNELS,
    ),
    "fused_kernel_options.*": BUILT_IN_KERNELS,
    "disable_dropout": "there is no dropout; leave it out",
    # low-rank pairs
    **same(".peft_config use_peft use_lora lora_config peft", PAIRS),
    **same("peft_config.* lora_config.*", PAIRS),
    **same("lora_r lora.r lora_rank peft_config.r lora_config.r model.lora.rank ds.lora.rank", "lora.rank"),
    **same("lora_alpha model.lora.alpha ds.lora.alpha", "lora.alpha"),
    **same("lora_target_modules target_modules", "lora.targets"),
    **same("lora_dropout lora.dropout", "low-rank pairs have no dropout; leave it out"),
    **same(
        "lora_modules_to_save modules_to_save exclude_modules lora_target_parameters use_dora "
        "use_rslora lora_task_type",
        "low-rank pairs have `lora.rank`, `lora.alpha` and `lora.targets`, and nothing else to set",
    ),
    "lora_adapter_path": (
        "an adapter is merged into its model first, by PEFT's merge_and_unload; `model.path` names the result"
    ),
    # checkpoints
    **same(".output_dir run.output_dir default_local_dir .save_path ckpt.output_dir logging_dir", FOLDER),
    **same("run_name experiment_name exp_name", "run.name"),
    **same("save_steps save_freq save_interval", "checkpoints.every"),
    "save_strategy": EVERY_SAVE,
    **same("save_total_limit max_actor_ckpt_to_keep max_ckpt_to_keep ckpt.max_num", "checkpoints.keep"),
    **same(
        "save_only_model save_contents load_contents no_save_optim save_safetensors save_hf", IN_A_CHECKPOINT
    ),
    **same("resume_from_checkpoint resume_mode resume_from_path load_enable load_checkpoint", RESUME),
    "load_best_model_at_end": '`checkpoints.best` = "METRIC" keeps the best step, which checkpoints/best names',
    **same("metric_for_best_model best_metric_key", "checkpoints.best"),
    "greater_is_better": '`checkpoints.best_is` = "max" or "min"',
    "early_stopping_patience": "checkpoints.patience",
    **same(
        "push_to_hub hub_model_id hub_token hub_strategy hub_private_repo hub_always_push hub_revision", PUSH
    ),
    # logs and evaluation
    **same("profiler.* global_profiler.*", NO_PROFILER),
    **same("logging_steps logging_strategy logging_first_step log_interval log_every_n_steps", EVERY_STEP),
    **same("report_to trainer.logger .logger log_with use_wandb use_tensorboard tensorboard_dir", LOGGERS),
    **same("project_name wandb_project wandb.project .project run.project", "run.wandb"),
    **same(
        "log_completions num_completions_to_print log_val_generations rollout_data_dir log_completions_steps",
        SHOWN,
    ),
    **same("eval_steps test_freq eval_interval eval_freq eval.steps eval.every", "eval_every"),
    **same("eval_strategy evaluation_strategy do_eval", EVALUATIONS),
    **same("per_device_eval_batch_size val_batch_size", HELD_OUT_BATCH),
    **same(
        "val_before_train eval_on_start skip_eval_before_train",
        only_in(
            "rl online-dpo distill dpo kto",
            "where `eval_every` is set, what is held out is measured before the first step too",
        ),
    ),
    "val_only": "evaluation is a command: foresail eval CHECKPOINT --data FILE",
    # chance
    **same(
        "data_seed data.seed trainer.seed train.seed rollout_seed sampling.seed data_loader_seed", "run.seed"
    ),
    **same(
        "data_shuffle .shuffle data.shuffle shuffle_dataset rollout_shuffle train_sampling_strategy "
        "actor.shuffle",
        SHUFFLED,
    ),
    **same("full_determinism full_determinism_enable deterministic_mode", "run.deterministic"),
    "average_tokens_across_devices": (
        "a loss is always a mean over the whole update, on all ranks; leave it out"
    ),
    "label_smoothing_factor": "the labels of tokens are not smoothed; leave it out",
    # experts and MTP layers
    "router_aux_loss_coef": (
        "`router.balance` weighs the loss of every layer, over the number of active experts: for "
        "the same pull set "
        "it to router_aux_loss_coef x active experts / layers"
    ),
    **same("aux_loss_coef moe_aux_loss_coeff", "router.balance"),
    "moe_router_bias_update_rate": "router.correction_rate",
    "moe_z_loss_coeff": "router.z",
    **same("mtp_loss_scaling_factor mtp_loss_weight", "mtp.weight"),
    "detach_encoder": "mtp.detach",
    **same(
        "num_nextn_predict_layers mtp_num_layers",
        "fresh weights have `model.shape.mtp` MTP layers, of a checkpoint `model.mtp_layers` are loaded",
    ),
    **same(
        "enable_mtp_training mtp.enable mtp.enable_train",
        "MTP layers learn where the recipe has a table [`mtp`]",
    ),
    "mtp.*": "MTP layers learn by [`mtp`], and draft in rollouts while that pays",
}
