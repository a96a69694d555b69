"""Phi-1, 1.5 and 2 (Gunasekar et al. 2023): half-turned heads, attention beside feed-forward behind one norm."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import DecoderHeads, architectures
from core_model.checkpoint.families.family import layer_rows
from core_model.checkpoint.families.fields import Positive, Rate
from core_model.checkpoint.families.llama_like import (
    PLACES,
    LlamaLikeKeys,
    llama_family,
    llama_keys,
    llama_names,
    llama_plan,
)
from core_model.checkpoint.families.plan import side_by_side
from core_model.config import ModelConfig, QueryKeyNorm, StackConfig

_HEADS = DecoderHeads(table="embed_tokens.weight", token_classes="score", bias=True)
_SHARE = 0.5
_PLACES = {
    **PLACES,
    "eps": "layer_norm_eps",
    "embedding_dropout": "embd_pdrop",
    "residual_dropout": "resid_pdrop",
}


@dataclass(frozen=True, kw_only=True)
class PhiKeys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    hidden_act: str | None = "gelu_new"
    layer_norm_eps: Positive = 1e-5
    qk_layernorm: bool = False
    resid_pdrop: Rate = 0.0
    embd_pdrop: Rate = 0.0


def _read(keys: PhiKeys) -> StackConfig:
    plan = llama_plan(keys, _PLACES, gated=False, bias=True, share=_SHARE)
    norm = QueryKeyNorm(norm=plan.norm, over="head") if keys.qk_layernorm else None
    layer = plan.layer(attention=plan.attention(query_key_norm=norm))
    return plan.stack([side_by_side(layer)] * plan.n_layers)


def _write(config: ModelConfig) -> PhiKeys:
    norm = config.output_stack.layers[0].attention.query_key_norm
    return PhiKeys(**llama_keys(config, _PLACES), qk_layernorm=norm is not None)


_LAYER = layer_rows(
    "layers.{i}",
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
    },
)

FAMILY = llama_family(
    _read,
    _write,
    key="phi",
    label="Phi",
    architectures=architectures("Phi", "sequence_classes", "token_classes"),
    keys=PhiKeys,
    names=llama_names(*_LAYER, heads=_HEADS, final_norm="final_layernorm"),
    heads=_HEADS,
    places=_PLACES,
)
