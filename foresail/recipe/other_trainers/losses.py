"""Other trainers' keys of advantages, losses, KL terms, rewards, critics, preferences and distillation."""

from __future__ import annotations

from foresail.recipe.other_trainers.answers import Answer, Answers, Row, Table, only_in, same

BOTH_SIDES: Row = (
    "both sides of the ratio have a key here: `loss.clip_low` and `loss.clip_high` (equal ones: PPO's clip)"
)
KL_IN_LOSS: Row = (
    "the KL term stands in the loss, not in the reward: `loss.kl_weight` is its weight, "
    "`loss.kl` its estimator"
)
STD: Row = (
    'advantages over the group\'s spread are `advantage.kind` = "grpo", without it '
    '`advantage.kind` = "dr_grpo"'
)
MISMATCH: Row = (
    "`loss.importance_cap` = 2.0 or the like weighs by the trainer/engine ratio, of tokens or of samples "
    "(`loss.importance_level`); `loss.importance_mask` leaves out what is outside `loss.importance_range`"
)
MASKED: Row = (
    "`loss.importance_range` has both bounds of the trainer/engine ratio, and `loss.importance_mask` says of what: "
    "tokens, or samples"
)
LOSS_TYPE: Row = (
    'of GRPOTrainer\'s values "grpo" is `loss.aggregation` = "seq-mean-token-mean", "dapo" and "bnpo" are '
    '"token-mean", "dr_grpo" is "constant"; "cispo" and "sapo" are values of `loss.kind`',
    "loss.kind",
    only_in("sft pretrain", "the loss is the negative log-likelihood of the tokens; there is no other"),
    only_in("reward-model", "the loss is Bradley and Terry's; there is no other"),
    only_in("distill", "what is minimised is named by `teacher.divergence`"),
)
REFERENCE: Row = ("reference.path", "loss.reference")
RENEWED: Answers = (
    "reference.renew_every",
    "the reference stays what it is at the start: `reference.path`, or the model that the run starts from",
    "the reference stays what it is at the start: `loss.reference`, or the model that the run starts from",
)
RENEWED_SOFTLY: Row = (
    "`reference.renew_every` takes the policy over as it is, without mixing it with the old reference",
    *RENEWED[1:],
)
REWARD_FUNCTION: Row = '`reward.grader` names file and function at once: "rewards.py:score"'
REWARD_MODEL: Row = 'a reward model is named by `reward.model.path`, with `reward.grader` = "model"'
MANAGER: Row = (
    "`reward.grader` names who grades, and `reward.workers` how many at once; there is nothing between them"
)
CUT_AT_THE_LIMIT: Answer = (
    "a response cut at the limit counts as it is graded; `reward.overlong_buffer` lets a "
    "penalty grow towards it"
)
CRITIC: Row = (
    "the critic learns from the same micro-batches as the policy; its own settings are "
    "[`critic`] and [`critic.optimizer`]"
)
JUDGED_HERE: Row = (
    'programs are judged on this machine: `reward.grader` = "code", with limits in [`reward.code`]'
)

LOSSES: Table = {
    # advantages and the policy's loss
    **same("adv_estimator advantage_estimator advantage.estimator", "advantage.kind"),
    "algorithm": (
        'it is put together from `advantage.kind` ("grpo", "rloo", "gae", …) and `loss.kind` ("clip", …)'
    ),
    **same(
        "scale_rewards norm_adv_by_std_in_grpo advantage_normalization no_std_norm "
        "disable_grpo_std_normalization",
        STD,
    ),
    **same("epsilon clip_ratio cliprange eps_clip eps_clip_low_high .clip_range", BOTH_SIDES),
    **same("epsilon_high clip_ratio_high eps_clip_high clip_eps_high", "loss.clip_high"),
    **same("epsilon_low clip_ratio_low eps_clip_low clip_eps_low", "loss.clip_low"),
    **same(".delta clip_ratio_c eps_clip_c actor.dual_clip", "loss.dual_clip"),
    **same("rollout_rs rollout_rs_threshold rollout_rs_threshold_lower", MASKED),
    **same("vllm_importance_sampling_clip_min tis_clip_low", MASKED),
    **same("opsm_delta use_opsm", "loss.off_policy_mask_threshold"),
    "loss_agg_mode": "loss.aggregation",
    "loss.type": "loss.kind",
    "loss_type": LOSS_TYPE,
    "rollout_correction.loss_type": only_in("rl", "loss.kind"),
    **same(
        "loss_mode policy_loss_type",
        only_in(
            "rl",
            '"vanilla" and "ppo" are `loss.kind` = "clip"; "gspo", "cispo" and "sapo" are values of '
            "`loss.kind` as well",
        ),
    ),
    "importance_sampling_level": only_in(
        "rl", 'level "token" is `loss.kind` = "clip", level "sequence" is `loss.kind` = "gspo"'
    ),
    **same(
        "tis_imp_ratio_cap rollout_is_threshold vllm_importance_sampling_cap "
        "vllm_importance_sampling_clip_max tis_clip is_correction_threshold",
        "loss.importance_cap",
    ),
    **same(
        "rollout_is use_tis vllm_importance_sampling_correction vllm_importance_sampling_mode "
        "is_correction_enable is_correction_type",
        MISMATCH,
    ),
    "calculate_per_token_loss": "loss.aggregation",
    **same(
        "use_rollout_logprobs bypass_mode",
        '`loss.old_logprobs` = "engine" takes them as sampled, "trainer" computes them anew',
    ),
    "keep_old_actor": '`loss.old_logprobs` = "trainer" computes old log-probabilities anew at every step',
    **same("entropy_coef entropy_coeff", "loss.entropy_weight"),
    "entropy_coef_max": "loss.entropy_weight_max",
    "entropy_coef_delta": "loss.entropy_step",
    "use_adaptive_entropy": "a bonus that adapts itself has `loss.entropy_target`, in nats",
    "actor.tau_pos": "loss.sapo_temperature_pos",
    "actor.tau_neg": "loss.sapo_temperature_neg",
    "calculate_entropy": "the entropy is always logged, as actor/entropy; leave it out",
    # the reference and the KL term
    **same(
        ".beta loss.beta model.beta",
        (
            "loss.kl_weight",
            "loss.beta",
            '`teacher.divergence` = "js" has `teacher.beta`; beta 0 is `teacher.divergence` = '
            '"forward", beta 1 "reverse"',
        ),
    ),
    "kl_loss_coef": "loss.kl_weight",
    **same("use_bias_correction_kl use_unbiased_kl", '`loss.kl` = "k3_unbiased"'),
    **same("kl_loss_type kl_estimator kl.estimator", "loss.kl"),
    **same("kl_coef kl_penalty init_kl_coef use_kl_in_reward kl_ctrl kl.init_coef", KL_IN_LOSS),
    "kl_ctrl.*": KL_IN_LOSS,
    **same("use_kl_loss kl.use_loss", "the KL term is there where `loss.kl_weight` is above 0"),
    **same(
        "ref_model ref_model_name_or_path ref_pretrain ref_load ref.model_name_or_path ref_model_path",
        REFERENCE,
    ),
    "ref.*": (
        "the reference is computed in micro-batches of `micro_batch_tokens` tokens; "
        "`loss.reference` names its checkpoint",
        "the reference is computed in micro-batches of `micro_batch_tokens` tokens; "
        "`reference.path` names its checkpoint",
    ),
    **same("ref_model_sync_steps ref_update_interval", RENEWED),
    **same("sync_ref_model ref_model_mixup_alpha", RENEWED_SOFTLY),
    "precompute_ref_log_probs": "reference.kept",
    # rewards
    **same(
        ".reward_funcs reward_fn reward_func reward_functions reward.kind .reward_function "
        "custom_rm_path rm_type compute_score reward.function reward.fn reward.func",
        "reward.grader",
    ),
    **same(
        "custom_reward_function.path custom_reward_function.name custom_reward_function "
        "reward_manager.module.path reward_manager.module.name",
        REWARD_FUNCTION,
    ),
    "multi_objective_aggregation": (
        '"normalize_then_sum" is `advantage.kind` = "gdpo"; else rewards are summed by the weights of '
        "`reward.terms`"
    ),
    "reward_weights": "every table [[reward.terms]] has a weight: `reward.terms`",
    **same(
        "remote_rm_url remote_url rm_url",
        '`reward.grader` = "file.py:function" names a function, which may call a URL itself',
    ),
    **same(
        "reward_model_path reward_model.model.path reward_pretrain reward.model_name_or_path "
        "reward_model_name_or_path",
        "reward.model.path",
    ),
    **same("reward_manager reward_manager.* reward_model.reward_manager", MANAGER),
    "reward_model.enable": REWARD_MODEL,
    "reward_model.num_workers": "reward.workers",
    "reward_model.*": REWARD_MODEL,
    "reward_processing_classes": "a reward model brings its tokenizer along; leave it out",
    **same("overlong_buffer.len overlong_buffer_cfg.len overlong_buffer_len", "reward.overlong_buffer"),
    **same(
        "overlong_buffer.penalty_factor overlong_buffer_cfg.penalty_factor overlong_penalty_factor",
        "reward.overlong_factor",
    ),
    **same(
        "overlong_buffer.enable overlong_buffer_cfg.enable .overlong_buffer overlong_buffer_cfg",
        "`reward.overlong_buffer` counts tokens, and 0 is off",
    ),
    **same("mask_truncated_completions overlong_filtering", CUT_AT_THE_LIMIT),
    "sandbox_fusion.memory_limit_mb": "reward.code.memory_mb",
    "sandbox_fusion.*": JUDGED_HERE,
    "reward_model.launch_reward_fn_async": "responses are always graded while others are drawn; leave it out",
    ".missing_eos_penalty": ("pairing.missing_eos_penalty", CUT_AT_THE_LIMIT),
    # the critic
    **same("critic_learning_rate critic.optim.lr", "critic.optimizer.lr"),
    "critic.optim.lr_warmup_steps_ratio": (
        "`critic.optimizer.warmup` counts updates: ratio x `steps` x `updates_per_step`"
    ),
    "critic.optim.betas": "there is a key for each: `critic.optimizer.beta1` and `critic.optimizer.beta2`",
    **same("critic.model.path critic_pretrain critic.model_name_or_path", "critic.path"),
    **same("cliprange_value value_clip", "critic.clip"),
    **same("critic_warmup num_critic_only_steps freezing_steps", "critic.warmup_steps"),
    **same("algorithm.gamma advantage.gamma", "critic.gamma"),
    **same("algorithm.lam lambd gae_lambda", "critic.lam"),
    "vf_coef": (
        "the critic has an optimiser of its own, so that its loss needs no weight: `critic.optimizer.lr`"
    ),
    "critic.*": CRITIC,
    # preference pairs
    **same("pref_beta dpo_beta simpo_beta", "loss.beta"),
    **same("rpo_alpha pref_ftx nll_loss_coef cpo_alpha", "loss.sft_weight"),
    "simpo_gamma": "loss.gamma",
    **same("dpo_label_smoothing model.label_smoothing", "loss.label_smoothing"),
    "loss_weights": (
        "`loss.kind` names one loss, and `loss.sft_weight` weighs a term that imitates the chosen answers"
    ),
    "ipo_enable": only_in("dpo online-dpo", '`loss.kind` = "ipo"'),
    "reference_free": only_in("dpo online-dpo", '`loss.kind` = "simpo" needs no reference'),
    "center_rewards_coefficient": "center",
    "margin_loss_enable": "margin",
    # distillation
    **same("teacher_model_name_or_path teacher_model teacher_model_path opd_teacher_load", "teacher.path"),
    "opd_kl_coef": "teacher.weight",
    **same(
        ".lmbda seq_kd",
        only_in("distill", "what is learned from is always the student's own samples; leave it out"),
    ),
}
