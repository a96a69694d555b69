"""GPT-2 (Radford et al. 2019), as transformers stores it: [in, out] matrices, queries, keys and values fused."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.conversion import TRANSPOSED
from core_model.checkpoint.families.decoders import DecoderHeads, DecoderKeys, decoder_family
from core_model.checkpoint.families.family import QUERY_KEY_VALUE, layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.plan import read_plan, write_keys
from core_model.config import LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError

HEADS = DecoderHeads(table="wte.weight")
DIALECT = {
    "n_layers": "n_layer",
    "n_heads": "n_head",
    "d_model": "n_embd",
    "vocab_size": "vocab_size",
    "max_length": "n_positions",
    "eps": "layer_norm_epsilon",
    "embedding_dropout": "embd_pdrop",
    "attention_dropout": "attn_pdrop",
    "residual_dropout": "resid_pdrop",
}
"""The places of `DialectKeys`."""
PLACES = {**DIALECT, "d_hidden": "n_inner", "activation": "activation_function"}
ALIASES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}


@dataclass(frozen=True, kw_only=True)
class DialectKeys(DecoderKeys):
    """The keys of config.json that OpenAI's models have in common, and those named after them."""

    n_positions: Count
    n_embd: Count
    n_layer: Count
    n_head: Count
    layer_norm_epsilon: Positive = 1e-5
    embd_pdrop: Rate = 0.1
    attn_pdrop: Rate = 0.1
    resid_pdrop: Rate = 0.1


@dataclass(frozen=True, kw_only=True)
class Gpt2Keys(DialectKeys):
    """The keys of config.json that decide what is computed."""

    n_inner: Count | None = None
    activation_function: str = "gelu_new"
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False


def _read(keys: Gpt2Keys) -> StackConfig:
    if keys.add_cross_attention:
        raise ConfigError("add_cross_attention is true in config.json: a GPT-2 that reads an encoder is not supported")
    plan = read_plan(keys, PLACES)
    scale = plan.head_size**-0.5 if keys.scale_attn_weights else 1.0
    divisors = range(1, plan.n_layers + 1) if keys.scale_attn_by_inverse_layer_idx else [1] * plan.n_layers
    layers = [plan.layer(attention=plan.attention(scale=scale / divisor)) for divisor in divisors]
    return plan.stack(layers, position=LearnedPositions(max_length=keys.n_positions))


def _write(config: ModelConfig) -> Gpt2Keys:
    first, last = (config.output_stack.layers[i].attention for i in (0, -1))
    return Gpt2Keys(
        **write_keys(config, PLACES),
        scale_attn_weights=first.scale == first.head_size**-0.5,
        scale_attn_by_inverse_layer_idx=last.scale != first.scale,
    )


NORMS = {"ln_1.*": "attention_residual.before.*", "ln_2.*": "feed_forward_residual.before.*"}
FUSED = {"attn.c_attn.*": QUERY_KEY_VALUE}
MATRICES = {
    "attn.c_proj.*": "attention.output.*",
    "mlp.c_fc.*": "feed_forward.input.*",
    "mlp.c_proj.*": "feed_forward.output.*",
}
ENDS = (row("wpe.weight", "decoder.position.weight"), row("ln_f.*", "decoder.final_norm.*"))
SIZES = {"vocab_size": ("wte.weight", 0), "n_embd": ("wte.weight", 1), "n_positions": ("wpe.weight", 0)}

FAMILY = decoder_family(
    HEADS,
    _read,
    _write,
    key="gpt2",
    label="GPT-2",
    architectures={
        "GPT2Model": None,
        "GPT2LMHeadModel": "language_model",
        "GPT2DoubleHeadsModel": "language_model",
        "GPT2ForSequenceClassification": "sequence_classes",
        "GPT2ForTokenClassification": "token_classes",
        "GPT2ForQuestionAnswering": "answer_span",
    },
    keys=Gpt2Keys,
    sizes=read_sizes({**SIZES, "n_inner": ("h.0.mlp.c_fc.weight", 1)}, n_layer="h.{i}.ln_1.weight"),
    places=PLACES,
    names=name_table(
        HEADS,
        *layer_rows("h.{i}", NORMS),
        *layer_rows("h.{i}", {**FUSED, **MATRICES}, TRANSPOSED),
        *ENDS,
        prefixes=("transformer.",),
        roots=(*HEADS.roots, "multiple_choice_head."),
        buffers=(r"h\.\d+\.attn\.(masked_)?bias",),
        unused=(r"multiple_choice_head\..*",),
    ),
    aliases=ALIASES,
    markers=(r"(transformer\.)?wpe\.weight", r"(transformer\.)?h\.0\.attn\.c_attn\.weight"),
)
