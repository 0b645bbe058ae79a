"""Other trainers' keys of the model, its tokenizer and template, and the data."""

from __future__ import annotations

from foresail.recipe.other_trainers.answers import Answers, Row, Table, only_in, same

SOURCE: Answers = (
    "data.source",
    "`stages.data` names a folder of token shards, which foresail data tokenize makes",
)
HELD_OUT: Row = ("eval.source", "held_out.source")
FROM_HUB: Row = (
    "`data.source` takes a file (.jsonl, .parquet) or a generator; fetch a hub's dataset first "
    "(well-known ones: foresail data get)",
    "`stages.data` names a folder of token shards, which foresail data tokenize makes from files",
)
LIMIT: Row = "data.limit"
# Which columns are read.
COLUMNS: Answers = (
    "`data.prompt_key` names the column of the prompt, `data.answer_key` that of the answer; "
    "usual names are seen by themselves",
    only_in(
        "sft",
        "conversations are known by their columns: messages, prompt and completion, conversations, "
        "instruction and output, or text; rename yours to one of these",
    ),
    only_in(
        "dpo reward-model",
        "pairs are known by their columns: prompt, chosen and rejected; rename yours to these",
    ),
    only_in(
        "kto",
        "judged answers are known by their columns: prompt, completion and label; rename yours to these",
    ),
    only_in("pretrain", "foresail data tokenize --text-key COLUMN makes token shards of a column"),
)
TOO_LONG: Row = (
    'nothing is cut: `data.too_long` = "drop" leaves out what is too long, "error" refuses to run',
    "documents are packed into rows, and go on in the next one; leave it out",
)
FILTER: Row = (
    'filter_overlong_prompts = true is `data.too_long` = "drop"',
    "documents are packed into rows, and go on in the next one; leave it out",
)
LEARNT_WORDS: Row = ("only the assistant's words have a loss, unless `data.roles` names others",)
NO_LOADER: Row = "data is read by the run itself, without worker processes; leave it out"
NO_IMAGES: Row = "models of text only; leave it out"
NO_REMOTE_CODE: Row = (
    "code that comes with a checkpoint is never run; families of models are part of Foresail"
)

DATA: Table = {
    # the model
    **same(
        "model_name_or_path actor_rollout_ref.model.path partial_pretrain .pretrain hf_checkpoint "
        "actor.model_name_or_path base_model model_id .model_path init_checkpoint",
        "model.path",
    ),
    **same(
        "tokenizer_path tokenizer_name_or_path data.tokenizer .processing_class tokenizer_name",
        "model.tokenizer",
    ),
    **same(
        "chat_template_path custom_chat_template tokenizer_chat_template data.chat_template",
        "model.chat_template",
    ),
    "model_revision": "`model.path` is a folder; fetch the revision that you want into it",
    **same("trust_remote_code external_lib", NO_REMOTE_CODE),
    **same(
        "model_init_kwargs model_init_kwargs.*",
        "[`model`] says how a model is opened: `model.dtype`, `model.tokenizer`, `model.mtp_layers`",
    ),
    "override_config.*": "a checkpoint is opened as its config.json says",
    # where data lies
    **same("train_files .prompt_data prompt_dataset data.dataset .dataset", SOURCE),
    ".train_dataset": (
        'training data is `data`: in a recipe `data.source` = "FILE", from Python the rows themselves',
        *SOURCE[1:],
    ),
    ".eval_dataset": (
        'held-out data is `eval`: in a recipe `eval.source` = "FILE", from Python the rows themselves',
        'held-out data is `held_out`: in a recipe `held_out.source` = "FILE"',
    ),
    **same("val_files eval.dataset eval_prompt_data val_data", HELD_OUT),
    **same(
        "dataset_name dataset_config dataset_train_split dataset_test_split dataset_split data_files "
        "data_dir prompt_split dataset_path dataset_name_or_path dataset_config_name",
        FROM_HUB,
    ),
    **same("train_max_samples data.max_samples max_train_samples", LIMIT),
    **same("val_max_samples max_eval_samples", ("eval.limit", "held_out.limit")),
    **same(
        "dataset_probs prompt_probs prompt_data_probs mixture_weights", ("data.weight", "stages.data.weight")
    ),
    "test_split_size": (
        "`data.held_out` = 0.05 keeps a share from training",
        "held-out data is a file of its own: `eval.source`",
    ),
    # which columns
    **same(
        "dataset_text_field text_column response_key output_key prompt_dict_keys response_dict_keys "
        "messages_key chosen_key rejected_key conversation_key",
        COLUMNS,
    ),
    **same(".input_key data.input_key", ("data.prompt_key", *COLUMNS[1:])),
    **same(".label_key data.label_key", ("data.answer_key", *COLUMNS[1:])),
    **same("data.prompt_key data.answer_key", COLUMNS[1:]),
    "formatting_func": COLUMNS,
    "multiturn.*": COLUMNS,
    "remove_unused_columns": (
        "all columns of a row reach `reward.grader`, where that is a function of your own; leave it out",
        "columns that are not needed do no harm; leave it out",
    ),
    **same(
        ".system_prompt data.system_prompt system_message",
        ("data.system", "a system message is part of a conversation: a first message with role system"),
    ),
    **same(
        "input_template prompt_template",
        "`data.suffix` and `data.system` go around every prompt; the chat template does the rest",
    ),
    "apply_chat_template": "the chat template is always applied; leave it out",
    # which rows, and which of their words
    **same("filter_overlong_prompts filter_overlong", FILTER),
    **same("data.truncation truncation_mode .truncation", TOO_LONG),
    **same(
        "max_seq_length max_seq_len cutoff_len seq_length model_max_length .sequence_len data.max_len",
        (
            "max_length",
            "stages.length",
            "a sample is at most `max_prompt_tokens` + `sampling.max_new_tokens` tokens long; set these two",
        ),
    ),
    **same(
        ".max_length data.max_length",
        (
            "max_length",
            "a sample is at most `max_prompt_tokens` + `sampling.max_new_tokens` tokens long; set these two",
            "`stages.length` are the tokens of a row",
        ),
    ),
    **same("assistant_only_loss completion_only_loss response_template loss_mask_type", LEARNT_WORDS),
    "train_on_inputs": '`data.roles` = ["assistant", "user"] gives the user\'s words a loss as well',
    "roles_to_train": "data.roles",
    # how it is read
    **same(
        "dataset_num_proc dataloader_num_workers dataloader_pin_memory dataloader_prefetch_factor "
        "dataloader_persistent_workers dataloader_drop_last filter_overlong_prompts_workers "
        "dataset_kwargs dataset_streaming streaming preprocessing_num_workers",
        NO_LOADER,
    ),
    "use_shm": "files are read where they lie; leave it out",
    **same(
        "data.custom_cls.path data.custom_cls.name data_source_path datagen.path datagen.name",
        (
            "`data.source` takes a file or a generator; write what your class gives to a file, or hand "
            "rows over from Python",
        ),
    ),
    **same(
        "sampler.class_path sampler.class_name",
        "`data.weight` and `mix` say what is drawn more often; the order follows from `run.seed`",
    ),
    **same(
        "image_key video_key multimodal_keys freeze_vision_tower freeze_visual_encoder limit_images "
        "max_images_per_prompt",
        NO_IMAGES,
    ),
}
