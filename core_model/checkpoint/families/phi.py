"""Phi-1, 1.5 and 2 (Gunasekar et al. 2023): half-turned heads, attention beside feed-forward behind one norm."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import DecoderHeads, architectures
from core_model.checkpoint.families.fields import Positive, Rate
from core_model.checkpoint.families.llama_like import (
    LlamaLikeKeys,
    attention,
    family,
    feed_forward,
    final_eps,
    layer_rows,
    name_table,
    rotary,
    shared_keys,
    stack,
)
from core_model.config import LayerSpec, ModelConfig, NormSpec, QueryKeyNorm, ResidualSpec, StackConfig

_HEADS = DecoderHeads(table="embed_tokens.weight", token_classes="score", bias=True)
_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class PhiKeys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    hidden_act: str | None = "gelu_new"
    layer_norm_eps: Positive = 1e-5
    qk_layernorm: bool = False
    resid_pdrop: Rate = 0.0
    embd_pdrop: Rate = 0.0


def _read(keys: PhiKeys) -> StackConfig:
    norm = NormSpec(eps=keys.layer_norm_eps)
    layer = LayerSpec(
        attention=attention(
            keys,
            qkv_bias=True,
            output_bias=True,
            position=rotary(keys, share=_SHARE),
            query_key_norm=QueryKeyNorm(norm=norm, over="head") if keys.qk_layernorm else None,
        ),
        attention_residual=ResidualSpec(before=norm, dropout=keys.resid_pdrop),
        feed_forward=feed_forward(keys, gated=False, bias=True),
        feed_forward_residual=ResidualSpec(dropout=keys.resid_pdrop),
        parallel=True,
        shared_norm=True,
    )
    return stack(keys, [layer] * keys.num_hidden_layers, norm, dropout=keys.embd_pdrop)


def _write(config: ModelConfig) -> PhiKeys:
    layer = config.output_stack.layers[0]
    return PhiKeys(
        **shared_keys(config),
        layer_norm_eps=final_eps(config),
        qk_layernorm=layer.attention.query_key_norm is not None,
        resid_pdrop=layer.attention_residual.dropout,
        embd_pdrop=config.output_stack.tokens.dropout,
    )


_LAYER = layer_rows(
    {
        "input_layernorm.*": "attention_residual.before.*",
        "self_attn.q_proj.*": "attention.query.*",
        "self_attn.k_proj.*": "attention.key.*",
        "self_attn.v_proj.*": "attention.value.*",
        "self_attn.dense.*": "attention.output.*",
        "self_attn.q_layernorm.*": "attention.query_norm.*",
        "self_attn.k_layernorm.*": "attention.key_norm.*",
        "mlp.fc1.*": "feed_forward.input.*",
        "mlp.fc2.*": "feed_forward.output.*",
    }
)

FAMILY = family(
    key="phi",
    label="Phi",
    architectures=architectures("Phi", "sequence_classes", "token_classes"),
    keys=PhiKeys,
    read=_read,
    write=_write,
    names=name_table(*_LAYER, heads=_HEADS, final_norm="final_layernorm"),
    heads=_HEADS,
    eps="layer_norm_eps",
)
