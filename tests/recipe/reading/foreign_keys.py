"""Keys as TRL, verl and others spell them, and the keys of ours that the answer to each names.

Behind a key stand our keys, or what its answer says in quotes, or `-` where there is no hint, or `other stages`
where they alone have something of the kind. Names of keys are facts; of TRL 1.x and transformers 5 (`TRL_…`),
verl of January 2026 (`VERL_…`), OpenRLHF and slime of August 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Row(NamedTuple):
    stage: str
    key: str
    answer: str


TRAINER = """
output_dir                      run.root run.name
per_device_train_batch_size     micro_batch_tokens
gradient_accumulation_steps     micro_batch_tokens
per_device_eval_batch_size      "evaluation takes"
learning_rate                   optimizer.lr
weight_decay                    optimizer.weight_decay
adam_beta1                      optimizer.beta1
adam_beta2                      optimizer.beta2
adam_epsilon                    optimizer.eps
max_grad_norm                   optimizer.clip_norm
optim                           optimizer.name optimizer.states
optim_args                      optimizer.name
optim_target_modules            -
bf16                            model.dtype
fp16                            model.dtype
bf16_full_eval                  -
fp16_full_eval                  -
tf32                            -
gradient_checkpointing          recompute
gradient_checkpointing_kwargs   recompute
average_tokens_across_devices   "leave it out"
label_smoothing_factor          "leave it out"
torch_compile                   "leave it out"
torch_compile_backend           "leave it out"
use_liger_kernel                "leave it out"
use_cache                       -
torch_empty_cache_steps         -
auto_find_batch_size            micro_batch_tokens
logging_steps                   "every step is logged"
logging_strategy                "every step is logged"
logging_first_step              "every step is logged"
logging_nan_inf_filter          -
log_level                       -
disable_tqdm                    -
report_to                       run.wandb
run_name                        run.name
project                         run.wandb
trackio_space_id                -
eval_strategy                   eval_every
eval_steps                      eval_every
eval_delay                      -
eval_accumulation_steps         -
prediction_loss_only            -
include_for_metrics             -
do_eval                         eval_every
do_train                        -
save_strategy                   checkpoints.every
save_steps                      checkpoints.every
save_total_limit                checkpoints.keep
save_only_model                 checkpoints.resumable
save_on_each_node               -
load_best_model_at_end          checkpoints.best
metric_for_best_model           checkpoints.best
greater_is_better               checkpoints.best_is
early_stopping_patience         checkpoints.patience
resume_from_checkpoint          "foresail resume RUN"
ignore_data_skip                -
push_to_hub                     "foresail export RUN FOLDER --push"
hub_model_id                    "foresail export RUN FOLDER --push"
hub_token                       "foresail export RUN FOLDER --push"
full_determinism                run.deterministic
seed                            run.seed
data_seed                       run.seed
use_cpu                         run.device
dataloader_drop_last            "leave it out"
dataloader_num_workers          "leave it out"
dataloader_pin_memory           "leave it out"
remove_unused_columns           "leave it out"
train_sampling_strategy         run.seed
fsdp                            cluster.ranks
fsdp_config                     cluster.ranks
deepspeed                       cluster.ranks
accelerator_config              cluster.ranks
ddp_timeout                     -
ddp_find_unused_parameters      -
local_rank                      cluster.ranks
debug                           -
skip_memory_metrics             -
model_name_or_path              model.path
model_revision                  model.path
dtype                           model.dtype
torch_dtype                     model.dtype
model_init_kwargs               model.dtype
model_init_kwargs.torch_dtype   model.dtype
model_init_kwargs.attn_implementation  "leave it out"
attn_implementation             "leave it out"
trust_remote_code               "never run"
disable_dropout                 "there is no dropout"
use_peft                        lora
peft_config                     lora
peft_config.r                   lora.rank
peft_config.target_modules      lora.targets
lora_r                          lora.rank
lora_alpha                      lora.alpha
lora_dropout                    "no dropout"
lora_target_modules             lora.targets
lora_modules_to_save            lora.targets
lora_task_type                  lora.targets
use_rslora                      lora.rank
use_dora                        lora.rank
load_in_4bit                    "not quantised"
load_in_8bit                    "not quantised"
quantization_config             "not quantised"
bnb_4bit_quant_type             "not quantised"
processing_class                model.tokenizer
callbacks                       -
compute_metrics                 -
args                            "a key of its own"
pad_to_multiple_of              "without padding"
pad_token                       "without padding"
dataset_num_proc                "leave it out"
router_aux_loss_coef            router.balance
activation_offloading           recompute
"""

TRL_RL = """
max_steps                       steps
num_train_epochs                steps prompts_per_step
per_device_train_batch_size     micro_batch_tokens prompts_per_step
per_device_eval_batch_size      engine.max_running
lr_scheduler_type               optimizer.schedule
lr_scheduler_kwargs             optimizer.final_share
warmup_steps                    optimizer.warmup
warmup_ratio                    optimizer.warmup steps updates_per_step
neftune_noise_alpha             other stages
eval_on_start                   eval_every
train_dataset                   data data.source
eval_dataset                    eval eval.source
reward_funcs                    reward.grader
reward_processing_classes       "leave it out"
tools                           environment.tools
rollout_func                    environment.name environment.program
environment_factory             environment.name environment.program
dataset_name                    data.source
dataset_train_split             data.source
dataset_text_field              data.prompt_key data.answer_key
columns                         -
num_generations                 samples_per_prompt
num_generations_eval            eval.samples
max_completion_length           sampling.max_new_tokens
max_prompt_length               max_prompt_tokens
max_length                      max_prompt_tokens sampling.max_new_tokens
max_seq_length                  max_prompt_tokens sampling.max_new_tokens
shuffle_dataset                 run.seed
generation_batch_size           prompts_per_step samples_per_prompt
steps_per_generation            updates_per_step
temperature                     sampling.temperature
top_p                           sampling.top_p
top_k                           sampling.top_k
min_p                           sampling.min_p
generation_kwargs               sampling
generation_kwargs.no_such       sampling
chat_template_kwargs            model.template_options
repetition_penalty              sampling
cache_implementation            rollout.backend
use_vllm                        rollout.backend
vllm_mode                       rollout.backend
vllm_model_impl                 rollout.backend
vllm_server_base_url            rollout.backend
vllm_server_port                rollout.backend
vllm_enable_sleep_mode          engine
vllm_gpu_memory_utilization     engine.kv_tokens
vllm_max_model_length           max_prompt_tokens sampling.max_new_tokens
vllm_tensor_parallel_size       cluster.ranks
vllm_structured_outputs_regex   -
use_transformers_paged          rollout.backend
ds3_gather_for_generation       -
cast_lm_head_to_fp32            -
beta                            loss.kl_weight
num_iterations                  passes_per_step updates_per_step
epsilon                         loss.clip_low loss.clip_high
epsilon_high                    loss.clip_high
delta                           loss.dual_clip
sapo_temperature_neg            loss.sapo_temperature_neg
sapo_temperature_pos            loss.sapo_temperature_pos
entropy_coef                    loss.entropy_weight
entropy_coef_max                loss.entropy_weight_max
entropy_coef_delta              loss.entropy_step
entropy_coef_min                -
entropy_target                  loss.entropy_target
use_adaptive_entropy            loss.entropy_target
top_entropy_quantile            loss.top_entropy_quantile
vespo_k_pos                     -
importance_sampling_level       loss.kind
reward_weights                  reward.terms
multi_objective_aggregation     advantage.kind reward.terms
scale_rewards                   advantage.kind
loss_type                       loss.aggregation loss.kind
mask_truncated_completions      reward.overlong_buffer
sync_ref_model                  loss.reference
ref_model_mixup_alpha           loss.reference
ref_model_sync_steps            loss.reference
max_tool_calling_iterations     environment.max_turns
vllm_importance_sampling_correction  loss.importance_cap
vllm_importance_sampling_mode   loss.importance_cap
vllm_importance_sampling_cap    loss.importance_cap
vllm_importance_sampling_clip_max    loss.importance_cap
vllm_importance_sampling_clip_min    loss.importance_range
off_policy_mask_threshold       loss.off_policy_mask_threshold
use_bias_correction_kl          loss.kl
log_completions                 show_samples
num_completions_to_print        show_samples
log_unique_prompts              -
label_smoothing                 other stages
precompute_ref_log_probs        other stages
assistant_only_loss             other stages
packing                         "without padding"
"""

TRL_SFT = """
max_steps                       steps
num_train_epochs                steps batch_size
per_device_train_batch_size     micro_batch_tokens batch_size
gradient_accumulation_steps     micro_batch_tokens batch_size
per_device_eval_batch_size      micro_batch_tokens
lr_scheduler_type               optimizer.schedule
lr_scheduler_kwargs             optimizer.final_share
warmup_steps                    optimizer.warmup
warmup_ratio                    optimizer.warmup steps
neftune_noise_alpha             neftune_alpha
train_dataset                   data data.source
eval_dataset                    held_out held_out.source
formatting_func                 "conversations are known by their columns"
data_collator                   "without padding"
dataset_name                    data.source
dataset_text_field              "conversations are known by their columns"
dataset_kwargs                  "leave it out"
chat_template_path              model.chat_template
max_seq_length                  max_length
truncation_mode                 data.too_long
shuffle_dataset                 run.seed
packing                         "without padding"
packing_strategy                "without padding"
padding_free                    "without padding"
eval_packing                    "without padding"
completion_only_loss            data.roles
assistant_only_loss             data.roles
loss_type                       "negative log-likelihood"
eos_token                       -
temperature                     other stages
num_generations                 other stages
max_completion_length           max_length
beta                            other stages
use_vllm                        other stages
"""

TRL_DPO = """
max_steps                       steps
num_train_epochs                steps batch_size
per_device_train_batch_size     micro_batch_tokens batch_size
warmup_ratio                    optimizer.warmup steps
train_dataset                   data data.source
eval_dataset                    eval eval.source
ref_model                       reference.path
beta                            loss.beta
loss_type                       loss.kind
loss_weights                    loss.kind loss.sft_weight
label_smoothing                 loss.label_smoothing
rpo_alpha                       loss.sft_weight
reference_free                  loss.kind
precompute_ref_log_probs        reference.kept
precompute_ref_batch_size       micro_batch_tokens
sync_ref_model                  reference.path
ref_model_mixup_alpha           reference.path
ref_model_sync_steps            reference.path
truncation_mode                 data.too_long
max_prompt_length               max_length
max_completion_length           max_length
padding_free                    "without padding"
ld_alpha                        -
f_divergence_type               -
f_alpha_divergence_coef         -
use_weighting                   -
discopop_tau                    -
desirable_weight                other stages
simpo_gamma                     loss.gamma
cpo_alpha                       loss.sft_weight
epsilon                         other stages
max_new_tokens                  other stages
"""

TRL_KTO = """
max_steps                       steps
num_train_epochs                steps batch_size
train_dataset                   data data.source
beta                            loss.beta
loss_type                       loss.kind
desirable_weight                loss.desirable_weight
undesirable_weight              loss.undesirable_weight
precompute_ref_log_probs        reference.kept
ref_model                       reference.path
dataset_text_field              "prompt, completion and label"
label_smoothing                 other stages
reference_free                  other stages
"""

TRL_ONLINE_DPO = """
beta                            loss.beta
loss_type                       loss.kind
max_new_tokens                  sampling.max_new_tokens
missing_eos_penalty             pairing.missing_eos_penalty
reward_model_path               reward.model.path
reward_funcs                    reward.grader
ref_model_sync_steps            reference.renew_every
sync_ref_model                  reference.renew_every
ref_model                       reference.path
num_iterations                  other stages
importance_sampling_level       other stages
"""

TRL_DISTILL = """
beta                            teacher.beta teacher.divergence
lmbda                           "the student's own samples"
seq_kd                          "the student's own samples"
teacher_model_name_or_path      teacher.path
temperature                     sampling.temperature
max_new_tokens                  sampling.max_new_tokens
max_completion_length           sampling.max_new_tokens
epsilon                         other stages
"""

TRL_REWARD_MODEL = """
center_rewards_coefficient      center
chat_template_path              model.chat_template
loss_type                       "Bradley"
num_train_epochs                steps batch_size
"""

PRETRAIN = """
max_steps                       stages.tokens stages.batch_tokens
num_train_epochs                stages.tokens
per_device_train_batch_size     stages.batch_tokens micro_batch_tokens
warmup_ratio                    stages.warmup_tokens stages.tokens
warmup_steps                    stages.warmup_tokens stages.batch_tokens
lr_scheduler_type               stages.decay
min_lr_ratio                    stages.final_lr
max_seq_length                  stages.length
train_dataset                   stages.data
dataset_text_field              "foresail data tokenize"
stages#1.learning_rate          stages.lr
"""

VERL_RL = """
data.train_files                                        data.source
data.val_files                                          eval.source
data.train_max_samples                                  data.limit
data.val_max_samples                                    eval.limit
data.reward_fn_key                                      -
data.max_prompt_length                                  max_prompt_tokens
data.max_response_length                                sampling.max_new_tokens
data.train_batch_size                                   prompts_per_step
data.gen_batch_size                                     prompts_per_step dynamic_sampling.max_rounds
data.val_batch_size                                     engine.max_running
data.tokenizer                                          model.tokenizer
data.tool_config_path                                   environment.tools
data.return_raw_input_ids                               -
data.return_raw_chat                                    -
data.return_full_prompt                                 -
data.shuffle                                            run.seed
data.seed                                               run.seed
data.dataloader_num_workers                             "leave it out"
data.validation_shuffle                                 -
data.filter_overlong_prompts                            data.too_long
data.filter_overlong_prompts_workers                    "leave it out"
data.truncation                                         data.too_long
data.image_key                                          "models of text only"
data.video_key                                          "models of text only"
data.trust_remote_code                                  "never run"
data.custom_cls.path                                    data.source
data.custom_cls.name                                    data.source
data.sampler.class_path                                 data.weight
data.apply_chat_template_kwargs                         model.template_options
data.apply_chat_template_kwargs.enable_thinking         model.template_options
actor_rollout_ref.hybrid_engine                         rollout.backend
actor_rollout_ref.nccl_timeout                          -
actor_rollout_ref.model.path                            model.path
actor_rollout_ref.model.tokenizer_path                  model.tokenizer
actor_rollout_ref.model.custom_chat_template            model.chat_template
actor_rollout_ref.model.hf_config_path                  -
actor_rollout_ref.model.external_lib                    "never run"
actor_rollout_ref.model.trust_remote_code               "never run"
actor_rollout_ref.model.override_config                 -
actor_rollout_ref.model.override_config.attn_implementation  "leave it out"
actor_rollout_ref.model.override_config.rope_scaling.factor  "config.json"
actor_rollout_ref.model.enable_gradient_checkpointing   recompute
actor_rollout_ref.model.enable_activation_offload       recompute
actor_rollout_ref.model.use_remove_padding              "without padding"
actor_rollout_ref.model.use_fused_kernels               "leave it out"
actor_rollout_ref.model.use_liger                       "leave it out"
actor_rollout_ref.model.use_shm                         "leave it out"
actor_rollout_ref.model.lora_rank                       lora.rank
actor_rollout_ref.model.lora_alpha                      lora.alpha
actor_rollout_ref.model.lora.rank                       lora.rank
actor_rollout_ref.model.target_modules                  lora.targets
actor_rollout_ref.model.exclude_modules                 lora.targets
actor_rollout_ref.model.lora_adapter_path               model.path
actor_rollout_ref.model.tiled_mlp.enabled               -
actor_rollout_ref.model.mtp.enable                      mtp
actor_rollout_ref.model.mtp.detach_encoder              mtp.detach
actor_rollout_ref.model.mtp.mtp_loss_scaling_factor     mtp.weight
actor_rollout_ref.model.mtp.num_speculative_tokens      mtp
actor_rollout_ref.actor.strategy                        cluster.ranks
actor_rollout_ref.actor.ppo_mini_batch_size             updates_per_step prompts_per_step
actor_rollout_ref.actor.ppo_micro_batch_size            micro_batch_tokens
actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu    micro_batch_tokens
actor_rollout_ref.actor.use_dynamic_bsz                 micro_batch_tokens
actor_rollout_ref.actor.ppo_max_token_len_per_gpu       micro_batch_tokens
actor_rollout_ref.actor.grad_clip                       optimizer.clip_norm
actor_rollout_ref.actor.clip_ratio                      loss.clip_low loss.clip_high
actor_rollout_ref.actor.clip_ratio_low                  loss.clip_low
actor_rollout_ref.actor.clip_ratio_high                 loss.clip_high
actor_rollout_ref.actor.clip_ratio_c                    loss.dual_clip
actor_rollout_ref.actor.tau_pos                         loss.sapo_temperature_pos
actor_rollout_ref.actor.entropy_coeff                   loss.entropy_weight
actor_rollout_ref.actor.loss_agg_mode                   loss.aggregation
actor_rollout_ref.actor.loss_scale_factor               -
actor_rollout_ref.actor.policy_loss.loss_mode           loss.kind
actor_rollout_ref.actor.policy_loss.clip_cov_ratio      -
actor_rollout_ref.actor.policy_loss.ppo_kl_coef         -
actor_rollout_ref.actor.calculate_entropy               "always logged"
actor_rollout_ref.actor.use_kl_loss                     loss.kl_weight
actor_rollout_ref.actor.kl_loss_coef                    loss.kl_weight
actor_rollout_ref.actor.kl_loss_type                    loss.kl
actor_rollout_ref.actor.ppo_epochs                      passes_per_step updates_per_step
actor_rollout_ref.actor.shuffle                         run.seed
actor_rollout_ref.actor.data_loader_seed                run.seed
actor_rollout_ref.actor.use_torch_compile               "leave it out"
actor_rollout_ref.actor.ulysses_sequence_parallel_size  cluster.context
actor_rollout_ref.actor.checkpoint.save_contents        checkpoints.resumable
actor_rollout_ref.actor.checkpoint.async_save           -
actor_rollout_ref.actor.entropy_from_logits_with_chunking  -
actor_rollout_ref.actor.router_replay.mode              engine.replay_routing
actor_rollout_ref.actor.profiler.enable                 "there is no profiler"
actor_rollout_ref.actor.profiler.save_path              "there is no profiler"
reward_model.rollout.profiler.save_path                 "there is no profiler"
actor_rollout_ref.actor.optim.lr                        optimizer.lr
actor_rollout_ref.actor.optim.optimizer                 optimizer.name
actor_rollout_ref.actor.optim.lr_warmup_steps           optimizer.warmup
actor_rollout_ref.actor.optim.lr_warmup_steps_ratio     optimizer.warmup steps updates_per_step
actor_rollout_ref.actor.optim.lr_scheduler_type         optimizer.schedule
actor_rollout_ref.actor.optim.warmup_style              optimizer.schedule
actor_rollout_ref.actor.optim.min_lr_ratio              optimizer.final_share
actor_rollout_ref.actor.optim.weight_decay              optimizer.weight_decay
actor_rollout_ref.actor.optim.betas                     optimizer.beta1 optimizer.beta2
actor_rollout_ref.actor.optim.clip_grad                 optimizer.clip_norm
actor_rollout_ref.actor.optim.num_cycles                -
actor_rollout_ref.actor.optim.lr_decay_steps            -
actor_rollout_ref.actor.optim.total_training_steps      steps
actor_rollout_ref.actor.fsdp_config.param_offload       recompute
actor_rollout_ref.actor.fsdp_config.optimizer_offload   recompute
actor_rollout_ref.actor.fsdp_config.fsdp_size           cluster.ranks
actor_rollout_ref.actor.fsdp_config.forward_prefetch    cluster.ranks
actor_rollout_ref.actor.fsdp_config.model_dtype         model.dtype
actor_rollout_ref.actor.fsdp_config.wrap_policy.min_num_params  cluster.ranks
actor_rollout_ref.actor.megatron.tensor_model_parallel_size    cluster.ranks
actor_rollout_ref.actor.megatron.context_parallel_size  cluster.context
actor_rollout_ref.actor.megatron.use_mbridge            cluster.ranks
actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu micro_batch_tokens loss.reference
actor_rollout_ref.ref.fsdp_config.param_offload         cluster.ranks
actor_rollout_ref.ref.strategy                          micro_batch_tokens loss.reference
actor_rollout_ref.rollout.name                          rollout.backend
actor_rollout_ref.rollout.mode                          rollout.backend
actor_rollout_ref.rollout.temperature                   sampling.temperature
actor_rollout_ref.rollout.top_k                         sampling.top_k
actor_rollout_ref.rollout.top_p                         sampling.top_p
actor_rollout_ref.rollout.n                             samples_per_prompt
actor_rollout_ref.rollout.prompt_length                 max_prompt_tokens
actor_rollout_ref.rollout.response_length               sampling.max_new_tokens
actor_rollout_ref.rollout.dtype                         model.dtype
actor_rollout_ref.rollout.gpu_memory_utilization        engine.kv_tokens
actor_rollout_ref.rollout.ignore_eos                    -
actor_rollout_ref.rollout.enforce_eager                 -
actor_rollout_ref.rollout.free_cache_engine             engine
actor_rollout_ref.rollout.load_format                   -
actor_rollout_ref.rollout.tensor_model_parallel_size    cluster.ranks
actor_rollout_ref.rollout.data_parallel_size            rollout.workers
actor_rollout_ref.rollout.max_num_batched_tokens        engine.prefill_tokens
actor_rollout_ref.rollout.max_num_seqs                  engine.max_running
actor_rollout_ref.rollout.max_model_len                 max_prompt_tokens sampling.max_new_tokens
actor_rollout_ref.rollout.enable_chunked_prefill        engine
actor_rollout_ref.rollout.enable_prefix_caching         engine
actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu  micro_batch_tokens
actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu     micro_batch_tokens
actor_rollout_ref.rollout.do_sample                     sampling.temperature
actor_rollout_ref.rollout.calculate_log_probs           engine
actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space rollout.backend
actor_rollout_ref.rollout.val_kwargs.n                  eval.samples
actor_rollout_ref.rollout.val_kwargs.temperature        eval.samples sampling
actor_rollout_ref.rollout.val_kwargs.top_p              eval.samples sampling
actor_rollout_ref.rollout.multi_turn.enable             environment
actor_rollout_ref.rollout.multi_turn.max_assistant_turns  environment.max_turns
actor_rollout_ref.rollout.multi_turn.tool_config_path   environment.tools
actor_rollout_ref.rollout.multi_turn.max_tool_response_length  environment.max_result_chars
actor_rollout_ref.rollout.multi_turn.interaction_config_path   environment.name
actor_rollout_ref.rollout.multi_turn.format             environment.format
actor_rollout_ref.rollout.agent.default_agent_loop      environment.name environment.program
actor_rollout_ref.rollout.agent.num_workers             environment
actor_rollout_ref.rollout.enable_rollout_routing_replay engine.replay_routing
actor_rollout_ref.rollout.prometheus.enable             -
actor_rollout_ref.rollout.quantization                  -
critic.optim.lr                                         critic.optimizer.lr
critic.optim.weight_decay                               critic.optimizer.weight_decay
critic.optim.lr_warmup_steps                            critic.optimizer.warmup
critic.optim.lr_warmup_steps_ratio                      critic.optimizer.warmup steps updates_per_step
critic.optim.lr_scheduler_type                          critic.optimizer.schedule
critic.model.path                                       critic.path
critic.model.enable_gradient_checkpointing              critic critic.optimizer
critic.model.fsdp_config.param_offload                  cluster.ranks
critic.ppo_micro_batch_size_per_gpu                     critic critic.optimizer
critic.ppo_epochs                                       critic critic.optimizer
critic.cliprange_value                                  critic.clip
critic.grad_clip                                        critic.optimizer.clip_norm
critic.loss_agg_mode                                    critic critic.optimizer
reward_model.enable                                     reward.model.path reward.grader
reward_model.model.path                                 reward.model.path
reward_model.model.input_tokenizer                      reward.model.path reward.grader
reward_model.micro_batch_size_per_gpu                   reward.model.path reward.grader
reward_model.reward_manager                             reward.grader reward.workers
reward_model.launch_reward_fn_async                     "leave it out"
reward_model.num_workers                                reward.workers
reward_model.sandbox_fusion.url                         reward.grader reward.code
reward_model.sandbox_fusion.memory_limit_mb             reward.code.memory_mb
reward_model.overlong_buffer.len                        reward.overlong_buffer
reward_model.reward_kwargs.overlong_buffer_cfg.len      reward.overlong_buffer
reward_model.reward_kwargs.overlong_buffer_cfg.penalty_factor  reward.overlong_factor
reward_model.reward_kwargs.overlong_buffer_cfg.enable   reward.overlong_buffer
custom_reward_function.path                             reward.grader
custom_reward_function.name                             reward.grader
algorithm.adv_estimator                                 advantage.kind
algorithm.gamma                                         critic.gamma
algorithm.lam                                           critic.lam
algorithm.norm_adv_by_std_in_grpo                       advantage.kind
algorithm.use_kl_in_reward                              loss.kl_weight loss.kl
algorithm.kl_penalty                                    loss.kl_weight loss.kl
algorithm.kl_ctrl.type                                  loss.kl_weight loss.kl
algorithm.kl_ctrl.kl_coef                               loss.kl_weight loss.kl
algorithm.kl_ctrl.target_kl                             loss.kl_weight loss.kl
algorithm.filter_groups.enable                          dynamic_sampling.enabled
algorithm.filter_groups.max_num_gen_batches             dynamic_sampling.max_rounds
algorithm.filter_groups.metric                          dynamic_sampling.enabled
algorithm.rollout_correction.rollout_is                 loss.importance_cap
algorithm.rollout_correction.rollout_is_threshold       loss.importance_cap
algorithm.rollout_correction.rollout_rs                 loss.importance_mask loss.importance_range
algorithm.rollout_correction.rollout_rs_threshold       loss.importance_range
algorithm.rollout_correction.bypass_mode                loss.old_logprobs
algorithm.use_pf_ppo                                    -
trainer.total_epochs                                    steps prompts_per_step
trainer.total_training_steps                            steps
trainer.project_name                                    run.wandb
trainer.experiment_name                                 run.name
trainer.logger                                          run.wandb
trainer.log_val_generations                             show_samples
trainer.rollout_data_dir                                show_samples
trainer.validation_data_dir                             -
trainer.nnodes                                          cluster.kind
trainer.n_gpus_per_node                                 cluster.ranks
trainer.save_freq                                       checkpoints.every
trainer.test_freq                                       eval_every
trainer.val_before_train                                eval_every
trainer.val_only                                        "foresail eval"
trainer.critic_warmup                                   critic.warmup_steps
trainer.default_local_dir                               run.root run.name
trainer.default_hdfs_dir                                -
trainer.resume_mode                                     "foresail resume RUN"
trainer.resume_from_path                                "foresail resume RUN"
trainer.max_actor_ckpt_to_keep                          checkpoints.keep
trainer.max_critic_ckpt_to_keep                         -
trainer.balance_batch                                   "without padding"
trainer.device                                          run.device
trainer.esi_redundant_time                              -
ray_kwargs.ray_init.num_cpus                            cluster.kind cluster.address
global_profiler.tool                                    "there is no profiler"
global_profiler.save_path                               "there is no profiler"
"""

VERL_SFT = """
data.train_files                       data.source
data.val_files                         held_out.source
data.train_batch_size                  batch_size
data.micro_batch_size_per_gpu          micro_batch_tokens
data.max_token_len_per_gpu             micro_batch_tokens
data.max_length                        max_length
data.truncation                        data.too_long
data.prompt_key                        "conversations are known by their columns"
data.response_key                      "conversations are known by their columns"
data.multiturn.enable                  "conversations are known by their columns"
data.multiturn.messages_key            "conversations are known by their columns"
data.messages_key                      "conversations are known by their columns"
data.pad_mode                          "without padding"
model.partial_pretrain                 model.path
model.enable_gradient_checkpointing    recompute
model.lora_rank                        lora.rank
model.strategy                         cluster.ranks
optim.lr                               optimizer.lr
optim.betas                            optimizer.beta1 optimizer.beta2
optim.weight_decay                     optimizer.weight_decay
optim.lr_warmup_steps_ratio            optimizer.warmup steps
optim.clip_grad                        optimizer.clip_norm
optim.lr_scheduler                     optimizer.schedule
ulysses_sequence_parallel_size         cluster.context
use_remove_padding                     "without padding"
trainer.total_epochs                   steps batch_size
trainer.seed                           run.seed
trainer.max_ckpt_to_keep               checkpoints.keep
"""

OTHERS_RL = """
rollout.batch_size                     prompts_per_step
rollout_batch_size                     prompts_per_step
rollout.n_samples_per_prompt           samples_per_prompt
train.batch_size                       prompts_per_step updates_per_step
train.micro_batch_size                 micro_batch_tokens
train.max_epochs                       steps prompts_per_step
train.async_enable                     rollout.staleness dynamic_sampling.carry
train.colocate_all                     cluster.placement
actor.model_name_or_path               model.path
actor.eps_clip                         loss.clip_low loss.clip_high
actor.dual_clip                        loss.dual_clip
actor.aux_loss_coef                    router.balance
critic.model_name_or_path              critic.path
critic.freezing_steps                  critic.warmup_steps
critic.value_clip                      critic.clip
ref.model_name_or_path                 loss.reference
reward.model_name_or_path              reward.model.path
reward.remote_url                      reward.grader
reward.overlong_buffer_len             reward.overlong_buffer
reward.clip_range                      -
reward.num_gpus_per_node               -
algo.advantage.estimator               advantage.kind
algo.advantage.gamma                   critic.gamma
algo.kl.init_coef                      loss.kl_weight loss.kl
algo.kl.estimator                      loss.kl
algo.dynamic_filtering_enable          dynamic_sampling.enabled
data.prompt_dataset                    data.source
data.input_key                         data.prompt_key
data.label_key                         data.answer_key
data.max_len                           max_prompt_tokens sampling.max_new_tokens
ds.zero_stage                          cluster.ranks
ds.lora.rank                           lora.rank
ds.ring_attn_size                      cluster.context
ds.adam_offload                        recompute
ckpt.max_num                           checkpoints.keep
ckpt.save_steps                        checkpoints.every
eval.steps                             eval_every
eval.n_samples_per_prompt              eval.samples
logger.wandb.project                   run.wandb
vllm.num_engines                       rollout.workers
vllm.tensor_parallel_size              cluster.ranks
prompt_data                            data.source
input_key                              data.prompt_key
label_key                              data.answer_key
hf_checkpoint                          model.path
ref_load                               loss.reference
num_rollout                            steps
num_steps_per_rollout                  updates_per_step
global_batch_size                      prompts_per_step updates_per_step
rollout-max-response-len               sampling.max_new_tokens
rollout_temperature                    sampling.temperature
rm_type                                reward.grader
advantage_estimator                    advantage.kind
eps_clip_c                             loss.dual_clip
use_tis                                loss.importance_cap
tis_clip                               loss.importance_cap
over_sampling_batch_size               prompts_per_step dynamic_sampling.max_rounds
max_tokens_per_gpu                     micro_batch_tokens
eval_prompt_data                       eval.source
use_rollout_routing_replay             engine.replay_routing
rollout_num_gpus                       rollout.workers
lr_warmup_fraction                     optimizer.warmup steps updates_per_step
custom_loss_function_path              -
"""

LISTS = {
    "rl": (TRAINER, TRL_RL, VERL_RL, OTHERS_RL),
    "sft": (TRAINER, TRL_SFT, VERL_SFT),
    "dpo": (TRAINER, TRL_DPO),
    "kto": (TRAINER, TRL_KTO),
    "online-dpo": (TRAINER, TRL_ONLINE_DPO),
    "distill": (TRAINER, TRL_DISTILL),
    "reward-model": (TRAINER, TRL_REWARD_MODEL),
    "pretrain": (TRAINER, PRETRAIN),
}


def foreign_keys() -> Iterator[Row]:
    for stage, lists in LISTS.items():
        answers = {}
        for text in lists:  # of a later list, where two have a key
            for line in text.strip().splitlines():
                key, answer = line.split(maxsplit=1)
                answers[key] = answer.strip()
        yield from (Row(stage, key, answer) for key, answer in answers.items())
