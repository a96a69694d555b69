"""StarCoder 2 (Lozhkov et al. 2024): rotary positions with biases, layer norms and a plain feed-forward."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    PRE_NORMS,
    LlamaLikeKeys,
    attention,
    family,
    feed_forward,
    final_eps,
    layer_rows,
    name_table,
    shared_keys,
    stack,
)
from core_model.config import LayerSpec, MaskSpec, ModelConfig, NormSpec, ResidualSpec, StackConfig


@dataclass(frozen=True, kw_only=True)
class Starcoder2Keys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 2
    hidden_act: str | None = "gelu_pytorch_tanh"
    norm_epsilon: Positive = 1e-5
    use_bias: bool = True
    sliding_window: Count | None = None
    residual_dropout: Rate = 0.0
    embedding_dropout: Rate = 0.0


def _read(keys: Starcoder2Keys) -> StackConfig:
    norm = NormSpec(eps=keys.norm_epsilon)
    residual = ResidualSpec(before=norm, dropout=keys.residual_dropout)
    mask = MaskSpec(causal=True, window=keys.sliding_window)
    layer = LayerSpec(
        attention=attention(keys, qkv_bias=keys.use_bias, output_bias=keys.use_bias, mask=mask),
        attention_residual=residual,
        feed_forward=feed_forward(keys, gated=False, bias=keys.use_bias),
        feed_forward_residual=residual,
    )
    return stack(keys, [layer] * keys.num_hidden_layers, norm, dropout=keys.embedding_dropout)


def _write(config: ModelConfig) -> Starcoder2Keys:
    layer = config.output_stack.layers[0]
    return Starcoder2Keys(
        **shared_keys(config),
        norm_epsilon=final_eps(config),
        use_bias=layer.attention.output_bias,
        sliding_window=layer.attention.mask.window,
        residual_dropout=layer.attention_residual.dropout,
        embedding_dropout=config.output_stack.tokens.dropout,
    )


_PLAIN = layer_rows({"mlp.c_fc.*": "feed_forward.input.*", "mlp.c_proj.*": "feed_forward.output.*"})

FAMILY = family(
    key="starcoder2",
    label="StarCoder 2",
    architectures=architectures("Starcoder2", "sequence_classes", "token_classes"),
    keys=Starcoder2Keys,
    read=_read,
    write=_write,
    names=name_table(*ATTENTION, *_PLAIN, *PRE_NORMS),
    eps="norm_epsilon",
    tied_by_default=True,
)
