"""fairseq's way to say an encoder and a decoder: keys of config.json, and names within their layers.

The translators after BART have it, and Whisper; OPT and XGLM have the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.family import Row, layer_rows, read_sizes, row
from core_model.checkpoint.families.fields import Count, Rate, SpecialKeys, TokenId, special_keys, special_tokens
from core_model.checkpoint.families.plan import Plan, write_stack
from core_model.config import LayerSpec, MaskSpec, ResidualSpec, SpecialTokens, StackConfig

PLACES = {
    "n_layers": "encoder_layers",
    "n_heads": "encoder_attention_heads",
    "d_model": "d_model",
    "d_hidden": "encoder_ffn_dim",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
    "activation": "activation_function",
}
ALIASES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
}


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderKeys(SpecialKeys):
    """The keys of config.json that fairseq's translators and Whisper have in common."""

    vocab_size: Count
    d_model: Count
    encoder_layers: Count
    encoder_attention_heads: Count
    encoder_ffn_dim: Count
    decoder_layers: Count
    decoder_attention_heads: Count
    decoder_ffn_dim: Count
    activation_function: str = "gelu"
    dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    tie_word_embeddings: bool | None = None
    decoder_start_token_id: TokenId = None

    @property
    def special(self) -> SpecialTokens:
        """The ids with a role, with that a decoder starts from."""
        return special_tokens(
            begin=self.bos_token_id,
            end=self.eos_token_id,
            padding=self.pad_token_id,
            decoder_start=self.decoder_start_token_id,
        )


def stack_places(stack: str) -> Mapping[str, str]:
    """What the keys of one of the stacks are called."""
    return {
        "n_layers": f"{stack}_layers",
        "n_heads": f"{stack}_attention_heads",
        "d_hidden": f"{stack}_ffn_dim",
        "d_model": "d_model",
        "activation": "activation_function",
        "attention_dropout": "attention_dropout",
        "residual_dropout": "dropout",
    }


def read_layer(
    keys: EncoderDecoderKeys, plan: Plan, residual: ResidualSpec, *, is_decoder: bool, **changes: Any
) -> LayerSpec:
    """A layer of one of the stacks; `changes` are fields of its attentions."""
    layer = plan.layer(
        residual=residual,
        attention=plan.attention(mask=MaskSpec(causal=is_decoder), **changes),
        feed_forward=plan.feed_forward(dropout=keys.activation_dropout),
    )
    crossing = plan.attention(mask=MaskSpec(), **changes)
    return replace(layer, cross_attention=crossing, cross_residual=residual) if is_decoder else layer


def stack_keys(encoder: StackConfig, decoder: StackConfig) -> dict[str, Any]:
    """The `EncoderDecoderKeys` of two stacks, by name; what they have in common is read from the encoder."""
    return {
        **write_stack(decoder, stack_places("decoder")),
        **write_stack(encoder, stack_places("encoder")),
        "activation_dropout": encoder.layers[0].feed_forward.dropout,
    }


def special_and_start_keys(special: SpecialTokens) -> dict[str, Any]:
    """The keys about special tokens and that a decoder starts from, by name."""
    return {**special_keys(special), "decoder_start_token_id": special.decoder_start}


def layer_names(norm: str) -> Mapping[str, str]:
    """fairseq's names within a layer, whose norms are `before` the sublayers or of the `total`."""
    return {
        "self_attn.q_proj.*": "attention.query.*",
        "self_attn.k_proj.*": "attention.key.*",
        "self_attn.v_proj.*": "attention.value.*",
        "self_attn.out_proj.*": "attention.output.*",
        "self_attn_layer_norm.*": f"attention_residual.{norm}.*",
        "encoder_attn.q_proj.*": "cross_attention.query.*",
        "encoder_attn.k_proj.*": "cross_attention.key.*",
        "encoder_attn.v_proj.*": "cross_attention.value.*",
        "encoder_attn.out_proj.*": "cross_attention.output.*",
        "encoder_attn_layer_norm.*": f"cross_residual.{norm}.*",
        "fc1.*": "feed_forward.input.*",
        "fc2.*": "feed_forward.output.*",
        "final_layer_norm.*": f"feed_forward_residual.{norm}.*",
    }


def stack_rows(stack: str, norm: str) -> tuple[Row, ...]:
    """fairseq's names of a stack."""
    layer = f"{stack}.layers.{{i}}"
    return (
        row(f"{stack}.embed_positions.weight", f"{stack}.position.weight"),
        row(f"{stack}.layernorm_embedding.*", f"{stack}.embedding.norm.*"),
        *layer_rows(layer, layer_names(norm), ours=layer),
        row(f"{stack}.layer_norm.*", f"{stack}.final_norm.*"),
    )


STACK_SIZES = read_sizes(
    {f"{stack}_ffn_dim": (f"{stack}.layers.0.fc1.weight", 0) for stack in ("encoder", "decoder")},
    encoder_layers="encoder.layers.{i}.fc1.weight",
    decoder_layers="decoder.layers.{i}.fc1.weight",
)
