"""GPT-Neo (Black et al. 2021): GPT-2 with scores that are not scaled, and a window in every second layer."""

from __future__ import annotations

from dataclasses import dataclass, field

from core_model.checkpoint.families.decoders import DecoderKeys, architectures, decoder_family
from core_model.checkpoint.families.family import layer_rows, name_table, read_sizes
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.gpt2 import ENDS, HEADS, NORMS
from core_model.checkpoint.families.plan import read_plan, write_keys
from core_model.checkpoint.families.windows import windowed
from core_model.config import LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_GLOBAL, _LOCAL = "global", "local"
_PLACES = {
    "n_layers": "num_layers",
    "n_heads": "num_heads",
    "d_model": "hidden_size",
    "d_hidden": "intermediate_size",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
    "activation": "activation_function",
    "eps": "layer_norm_epsilon",
    "embedding_dropout": "embed_dropout",
    "attention_dropout": "attention_dropout",
    "residual_dropout": "resid_dropout",
}


@dataclass(frozen=True, kw_only=True)
class GptNeoKeys(DecoderKeys):
    """The keys of config.json that decide what is computed. `attention_types` are (kinds, how many times) in turn."""

    max_position_embeddings: Count
    hidden_size: Count
    num_layers: Count
    num_heads: Count
    attention_types: list[tuple[list[str], Count]] = field(default_factory=lambda: [([_GLOBAL, _LOCAL], 12)])
    intermediate_size: Count | None = None
    window_size: Count = 256
    activation_function: str = "gelu_new"
    layer_norm_epsilon: Positive = 1e-5
    embed_dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    resid_dropout: Rate = 0.0


def _read(keys: GptNeoKeys) -> StackConfig:
    plan = read_plan(keys, _PLACES)
    layer = plan.layer(attention=plan.attention(scale=1.0, bias=False, output_bias=True))
    layers = windowed(layer, [keys.window_size if kind == _LOCAL else None for kind in _kinds(keys)])
    return plan.stack(layers, position=LearnedPositions(max_length=keys.max_position_embeddings))


def _kinds(keys: GptNeoKeys) -> list[str]:
    """The kind of every layer's attention; ConfigError unless there is one a layer."""
    n_kinds = sum(len(kinds) * times for kinds, times in keys.attention_types)
    if n_kinds != keys.num_layers:
        raise ConfigError(
            f"attention_types gives {n_kinds} layers and num_layers is {keys.num_layers} in config.json: "
            "they must be the same"
        )
    found = [kind for kinds, times in keys.attention_types for kind in kinds * times]
    if unknown := [kind for kind in found if kind not in (_GLOBAL, _LOCAL)]:
        raise ConfigError(
            f"attention_types has {shown(repr(unknown[0]))} in config.json: expected {_GLOBAL} or {_LOCAL}"
        )
    return found


def _write(config: ModelConfig) -> GptNeoKeys:
    windows = [layer.attention.mask.window for layer in config.output_stack.layers]
    return GptNeoKeys(
        **write_keys(config, _PLACES),
        attention_types=[([_GLOBAL if window is None else _LOCAL for window in windows], 1)],
        window_size=next((window for window in windows if window is not None), 256),
    )


FAMILY = decoder_family(
    HEADS,
    _read,
    _write,
    key="gpt_neo",
    label="GPT-Neo",
    architectures=architectures("GPTNeo", "sequence_classes", "token_classes", "answer_span"),
    keys=GptNeoKeys,
    sizes=read_sizes(
        {
            "vocab_size": (HEADS.table, 0),
            "hidden_size": (HEADS.table, 1),
            "max_position_embeddings": ("wpe.weight", 0),
            "intermediate_size": ("h.0.mlp.c_fc.weight", 0),
        },
        num_layers="h.{i}.ln_1.weight",
    ),
    places=_PLACES,
    names=name_table(
        HEADS,
        *layer_rows(
            "h.{i}",
            {
                **NORMS,
                "attn.attention.q_proj.*": "attention.query.*",
                "attn.attention.k_proj.*": "attention.key.*",
                "attn.attention.v_proj.*": "attention.value.*",
                "attn.attention.out_proj.*": "attention.output.*",
                "mlp.c_fc.*": "feed_forward.input.*",
                "mlp.c_proj.*": "feed_forward.output.*",
            },
        ),
        *ENDS,
        prefixes=("transformer.",),
        buffers=(r"h\.\d+\.attn\.attention\.(masked_)?bias",),
    ),
    aliases={"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
    markers=(r"(transformer\.)?wpe\.weight", r"(transformer\.)?h\.0\.attn\.attention\.q_proj\.weight"),
)
