"""Templates as checkpoints ship them, with `{% generation %}` added so that transformers can mark the turns.

The tag is no part of what Foresail reads: `without_tags` gives the templates as they are in the wild.
"""

CHATML = """\
{%- if messages[0].role != 'system' %}{{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}{{- message.content + '<|im_end|>' }}{% endgeneration %}{{- '\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

LLAMA3 = """\
{%- for message in messages %}
    {%- set head = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' %}
    {%- if loop.first %}{% set head = bos_token + head %}{% endif %}
    {%- if message['role'] == 'assistant' %}
        {{- head }}{% generation %}{{- message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}
    {%- else %}
        {{- head + message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""

# No generation prompt of its own, roles must alternate, and the answer begins with a space.
MISTRAL = """\
{{- bos_token }}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate user/assistant/user/assistant') }}
    {%- endif %}
    {%- if message.role == 'user' %}
        {{- '[INST] ' + message.content + ' [/INST]' }}
    {%- else %}
        {%- generation %}{{- ' ' + message.content + eos_token }}{% endgeneration %}
    {%- endif %}
{%- endfor %}"""

ZEPHYR = """\
{% for message in messages %}
{% if message['role'] == 'assistant' %}
{{ '<|assistant|>\\n' }}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}{{ '\\n' }}
{%- else %}
{{ '<|' + message['role'] + '|>\\n' + message['content'] + eos_token + '\\n' }}
{%- endif %}
{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"""

# Qwen3's habit: thinking is kept in the last turn only.
FORGETFUL = """\
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and not loop.last %}
        {%- set content = content.split('</think>')[-1] %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

# DeepSeek-R1's habit: thinking is never kept.
DROPPING = FORGETFUL.replace(" and not loop.last", "")


def without_tags(template: str) -> str:
    """The same template with the same whitespace, less the tags."""
    for tag in ("generation", "endgeneration"):
        template = template.replace(f"{{%- {tag} %}}", "{%- if true %}{%- endif %}")
        template = template.replace(f"{{% {tag} %}}", "{% if true %}{% endif %}")
    return template
