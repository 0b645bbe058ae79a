"""Other trainers' keys of processes, devices and clusters."""

from __future__ import annotations

from foresail.recipe.other_trainers.answers import Row, Table, same

RANKS: Row = "`cluster.ranks` counts the processes that train the model together, a GPU each, by FSDP2"
NO_TENSOR_PARALLEL: Row = (
    "matrices are not split over devices; `cluster.ranks` shards weights and states by FSDP2 instead"
)
HOSTS: Row = (
    "the ranks of a run are on one host, or on those of a Ray cluster: `cluster.kind`; "
    "torchrun may start them on several"
)
WORKERS: Row = (
    "`rollout.workers` counts the engines in processes of their own, and [`cluster`] says where they are"
)

MACHINES: Table = {
    **same(
        "context_parallel_size cp_size ring_attn_size sequence_parallel_size ulysses_sequence_parallel_size",
        "cluster.context",
    ),
    **same(
        "deepspeed .fsdp .fsdp_config zero_stage n_gpus_per_node num_gpus num_gpus_per_node "
        "actor_num_gpus_per_node world_size num_processes fsdp_size actor.strategy model.strategy .strategy "
        "accelerator_config parallelism_config train_backend local_rank fsdp_transformer_layer_cls_to_wrap",
        RANKS,
    ),
    "fsdp_config.*": RANKS,
    "megatron.*": NO_TENSOR_PARALLEL,
    **same(
        "tensor_model_parallel_size tensor_parallel_size vllm_tensor_parallel_size "
        "pipeline_model_parallel_size expert_model_parallel_size expert_parallel_size "
        "expert_tensor_parallel_size rollout_num_gpus_per_engine tp_size pp_size ep_size",
        NO_TENSOR_PARALLEL,
    ),
    **same("nnodes num_nodes actor_num_nodes", HOSTS),
    **same("rollout_num_gpus num_engines vllm_num_engines data_parallel_size", WORKERS),
    **same(
        "colocate colocate_all colocate_all_models",
        '`cluster.placement` = "colocated" or "separate", on a Ray cluster',
    ),
    "ray_kwargs.*": '`cluster.kind` = "ray", and `cluster.address` of a cluster that runs',
    "ray_address": "cluster.address",
    "trainer.device": "run.device",
    **same("use_cpu no_cuda", '`run.device` = "cpu"'),
}
