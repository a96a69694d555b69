"""GPT-BigCode: SantaCoder, StarCoder (Li et al. 2023): GPT-2 with one key head for all, and [out, in] matrices."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures, decoder_family, fused_by_head
from core_model.checkpoint.families.family import layer_rows, name_table, read_sizes
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.gpt2 import ALIASES, ENDS, HEADS, MATRICES, NORMS, PLACES, SIZES, DialectKeys
from core_model.checkpoint.families.plan import read_plan, write_keys
from core_model.config import LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class GptBigcodeKeys(DialectKeys):
    """The keys of config.json that decide what is computed."""

    n_inner: Count | None = None
    multi_query: bool = True
    activation_function: str = "gelu_pytorch_tanh"
    scale_attn_weights: bool = True
    add_cross_attention: bool = False


def _read(keys: GptBigcodeKeys) -> StackConfig:
    if keys.add_cross_attention:
        raise ConfigError("add_cross_attention is true in config.json: one that reads an encoder is not supported")
    plan = read_plan(keys, PLACES, n_key_heads=1 if keys.multi_query else keys.n_head)
    scale = plan.head_size**-0.5 if keys.scale_attn_weights else 1.0
    layer = plan.layer(attention=plan.attention(scale=scale))
    return plan.stack([layer] * plan.n_layers, position=LearnedPositions(max_length=keys.n_positions))


def _write(config: ModelConfig) -> GptBigcodeKeys:
    attention = config.output_stack.layers[0].attention
    return GptBigcodeKeys(
        **write_keys(config, PLACES),
        multi_query=attention.n_key_heads == 1,
        scale_attn_weights=attention.scale == attention.head_size**-0.5,
    )


FAMILY = decoder_family(
    HEADS,
    _read,
    _write,
    key="gpt_bigcode",
    label="GPT-BigCode",
    architectures=architectures("GPTBigCode", "sequence_classes", "token_classes"),
    keys=GptBigcodeKeys,
    sizes=read_sizes({**SIZES, "n_inner": ("h.0.mlp.c_fc.weight", 0)}, n_layer="h.{i}.ln_1.weight"),
    places=PLACES,
    names=name_table(
        HEADS,
        *layer_rows("h.{i}", {**NORMS, **MATRICES}),
        *ENDS,
        of_config=fused_by_head("h.{i}", "attn.c_attn.*"),
        prefixes=("transformer.",),
        buffers=(r"h\.\d+\.attn\.bias", r"bias"),
    ),
    aliases=ALIASES,
)
