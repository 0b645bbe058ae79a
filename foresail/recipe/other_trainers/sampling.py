"""Other trainers' keys of sampling, inference engines, and episodes of several turns."""

from __future__ import annotations

from foresail.recipe.other_trainers.answers import Row, Table, same

OWN_ENGINE: Row = (
    "the engine is Foresail's own and runs in the same process on the same weights; "
    '`rollout.backend` = "vllm" '
    "takes vLLM instead, others there are none; [`engine`] and [`rollout`] hold the settings"
)
NO_SERVER: Row = (
    'no server has to be started: with `rollout.backend` = "vllm" the run starts vLLM itself, '
    "on the machine it is on"
)
CACHE: Row = "the cache takes what all samples need, or `engine.kv_tokens` tokens where that is set"
LENT: Row = "the cache of the [`engine`] lends its memory to updates by itself; leave it out"
SAMPLED_AS: Row = (
    "responses are drawn as [`sampling`] says: temperature, top_p, top_k, min_p, max_new_tokens, stop"
)
NO_PENALTY: Row = "[`sampling`] has no penalties: tokens are drawn from the policy as it is"
GREEDY: Row = "`sampling.temperature` = 0 is greedy, anything above it samples"
HELD_OUT_ANSWERS: Row = (
    "held-out problems have one greedy answer each where `eval.samples` is 0, else so many, "
    "drawn as [`sampling`] says"
)
ALWAYS_THERE: Row = "the [`engine`] always does; leave it out"
EPISODES: Row = (
    "episodes of several turns are the table [`environment`]: its tools, or an environment or program of "
    "your own"
)

SAMPLING: Table = {
    # how responses are drawn
    **same(
        ".n rollout.n sampling.n n_samples_per_prompt n_samples num_generations num_return_sequences rollout_n "
        "num_samples_per_prompt",
        "samples_per_prompt",
    ),
    **same(
        "num_generations_eval n_samples_per_eval_prompt val_kwargs.n eval.n eval.n_samples_per_prompt "
        "eval_n_samples_per_prompt",
        "eval.samples",
    ),
    "val_kwargs.*": HELD_OUT_ANSWERS,
    **same("eval_temperature eval_top_p eval_top_k eval.temperature eval_max_response_len", HELD_OUT_ANSWERS),
    **same("rollout.temperature rollout_temperature", "sampling.temperature"),
    **same("rollout.top_p rollout_top_p", "sampling.top_p"),
    **same("rollout.top_k rollout_top_k", "sampling.top_k"),
    "rollout.min_p": "sampling.min_p",
    **same(
        "max_completion_length max_response_length max_response_len rollout_max_response_len "
        "generate_max_len response_length .max_tokens .max_gen_len rollout.max_new_tokens "
        "max_output_tokens",
        ("sampling.max_new_tokens", "`max_length` counts prompt and answer together"),
    ),
    **same(
        "max_prompt_length prompt_max_len max_prompt_len rollout_max_prompt_len prompt_length",
        ("max_prompt_tokens", "`max_length` counts prompt and answer together"),
    ),
    **same(
        "max_model_len vllm_max_model_length rollout_max_context_len",
        "a sample is at most `max_prompt_tokens` + `sampling.max_new_tokens` tokens long; set these two",
    ),
    **same("stop_strings rollout_stop stop_sequences", "sampling.stop"),
    **same(
        "rollout_stop_token_ids stop_token_ids stop_token_id stop_token",
        "a response ends at the tokenizer's end tokens, and at the texts of `sampling.stop`",
    ),
    **same("do_sample rollout.do_sample", GREEDY),
    **same("generation_kwargs sampling_params generation_config", SAMPLED_AS),
    **same("generation_kwargs.* sampling_params.*", SAMPLED_AS),
    **same(
        "repetition_penalty presence_penalty frequency_penalty no_repeat_ngram_size logit_bias", NO_PENALTY
    ),
    "chat_template_kwargs": '`model.template_options` = ["enable_thinking=false"], a list of name=value',
    **same(
        "chat_template_kwargs.* apply_chat_template_kwargs.* apply_chat_template_kwargs",
        '`model.template_options` = ["enable_thinking=false"], a list of name=value',
    ),
    # what draws them
    **same(
        "use_vllm vllm_mode vllm_model_impl rollout.name rollout.mode engine.backend engine.name .backend "
        "inference_backend use_transformers_paged use_transformers_continuous_batching "
        "transformers_continuous_batching_config cache_implementation hybrid_engine",
        OWN_ENGINE,
    ),
    "engine_kwargs.*": OWN_ENGINE,
    "vllm.*": OWN_ENGINE,
    "sglang.*": OWN_ENGINE,
    **same(
        "vllm_server_base_url vllm_server_host vllm_server_port vllm_server_timeout vllm_group_port",
        NO_SERVER,
    ),
    **same(
        "gpu_memory_utilization vllm_gpu_memory_utilization mem_fraction_static sglang_mem_fraction_static",
        CACHE,
    ),
    **same(
        "free_cache_engine multi_stage_wake_up vllm_enable_sleep_mode enable_sleep enable_sleep_mode "
        "vllm_enable_sleep",
        LENT,
    ),
    **same("enable_chunked_prefill enable_prefix_caching calculate_log_probs", ALWAYS_THERE),
    **same("max_num_seqs max_running_requests sglang_max_running_requests", "engine.max_running"),
    **same(
        "max_num_batched_tokens chunked_prefill_size sglang_chunked_prefill_size", "engine.prefill_tokens"
    ),
    "micro_rollout_batch_size": "`engine.max_running` counts the samples decoded at once",
    "rollout.micro_batch_size": "`engine.max_running` counts the samples decoded at once",
    **same("sglang_page_size block_size", "engine.page_size"),
    **same("kv_cache_dtype sglang_kv_cache_dtype", '`engine.kv_dtype` = "fp8", or "model" as it is'),
    **same("enable_rollout_routing_replay use_rollout_routing_replay", "engine.replay_routing"),
    "router_replay.mode": 'mode "R3" is `engine.replay_routing` = true, and "disabled" is false',
    **same("max_head_offpolicyness max_async_level max_staleness", "rollout.staleness"),
    "async_queue_size": "`rollout.staleness` is 0 or 1: so many steps the weights that draw may be behind",
    **same(
        "async_enable partial_rollout partial_rollout_enable",
        (
            "`rollout.staleness` = 1 lets the next rollout run beside the update; "
            "`dynamic_sampling.carry` goes on with "
            "samples that a step cut off"
        ),
    ),
    # how many prompts, and which groups count
    **same("rollout_batch_size rollout.batch_size num_prompts_per_step", "prompts_per_step"),
    **same(
        "gen_batch_size over_sampling_batch_size vllm_generate_batch_size",
        (
            "`prompts_per_step` are learned from; how many more are drawn for them follows from pass "
            "rates, up to "
            "`dynamic_sampling.max_rounds` times as many"
        ),
    ),
    **same(
        "filter_groups filter_groups.enable dynamic_filtering dynamic_filtering_enable "
        "dynamic_sampling_filter_path dynamic_sampling.enable",
        "dynamic_sampling.enabled",
    ),
    "max_num_gen_batches": "dynamic_sampling.max_rounds",
    **same(
        "dynamic_sampling_filter_path dynamic_filtering_range dynamic_filtering_reward_range",
        (
            "`dynamic_sampling.enabled` leaves out groups whose samples all got the same reward; "
            "`dynamic_sampling.window` "
            "passes over problems by their pass rate"
        ),
    ),
    "filter_groups.metric": "groups are left out where all samples got the same reward: `dynamic_sampling.enabled`",
    # episodes
    **same("max_tool_calling_iterations max_assistant_turns max_user_turns", "environment.max_turns"),
    **same(".tools tool_config_path", "environment.tools"),
    "max_tool_response_length": "environment.max_result_chars",
    "multi_turn.format": "environment.format",
    "interaction_config_path": "environment.name",
    **same(
        "environment_factory agent_loop_config_path default_agent_loop agent_func_path "
        "custom_generate_function_path rollout_function_path rollout_func",
        (
            "`environment.name` takes an environment of your own, and `environment.program` an agent "
            "that owns its loop: file.py:NAME"
        ),
    ),
    "multi_turn.*": EPISODES,
    "agent.*": EPISODES,
}
