"""StarCoder 2 (Lozhkov et al. 2024): rotary positions with biases, layer norms and a plain feed-forward."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.family import layer_rows
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    PLACES,
    PRE_NORMS,
    LlamaLikeKeys,
    llama_family,
    llama_keys,
    llama_names,
    llama_plan,
)
from core_model.config import MaskSpec, ModelConfig, StackConfig

_PLACES = {
    **PLACES,
    "eps": "norm_epsilon",
    "embedding_dropout": "embedding_dropout",
    "residual_dropout": "residual_dropout",
}


@dataclass(frozen=True, kw_only=True)
class Starcoder2Keys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 2
    hidden_act: str | None = "gelu_pytorch_tanh"
    max_position_embeddings: Count = 4096
    norm_epsilon: Positive = 1e-5
    use_bias: bool = True
    sliding_window: Count | None = None
    residual_dropout: Rate = 0.0
    embedding_dropout: Rate = 0.0


def _read(keys: Starcoder2Keys) -> StackConfig:
    plan = llama_plan(keys, _PLACES, gated=False, bias=keys.use_bias)
    attention = plan.attention(mask=MaskSpec(causal=True, window=keys.sliding_window))
    return plan.stack([plan.layer(attention=attention)] * plan.n_layers)


def _write(config: ModelConfig) -> Starcoder2Keys:
    attention = config.output_stack.layers[0].attention
    return Starcoder2Keys(
        **llama_keys(config, _PLACES), use_bias=attention.output_bias, sliding_window=attention.mask.window
    )


_PLAIN = layer_rows("layers.{i}.mlp", {"c_fc.*": "feed_forward.input.*", "c_proj.*": "feed_forward.output.*"})

FAMILY = llama_family(
    _read,
    _write,
    key="starcoder2",
    label="StarCoder 2",
    architectures=architectures("Starcoder2", "sequence_classes", "token_classes"),
    keys=Starcoder2Keys,
    names=llama_names(*ATTENTION, *_PLAIN, *PRE_NORMS),
    places=_PLACES,
    tied_by_default=True,
)
