"""OPT (Zhang et al. 2022): GPT-2's layers under BART's names; 350M norms after sums and has a narrow token table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.decoders import (
    CAUSAL,
    DecoderHeads,
    DecoderKeys,
    architectures,
    common_keys,
    equal_heads,
    foreign,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Rate, activation, activation_name
from core_model.config import (
    FeedForwardSpec,
    HeadTransform,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="decoder.embed_tokens.weight")
_PADDING_ROWS = 2
"""Rows at the front of the position table that no token reads."""


@dataclass(frozen=True, kw_only=True)
class OptKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    ffn_dim: Count
    max_position_embeddings: Count = 2048
    word_embed_proj_dim: Count | None = None
    do_layer_norm_before: bool = True
    _remove_final_layer_norm: bool = False
    layer_norm_elementwise_affine: bool = True
    enable_bias: bool = True
    activation_function: str = "relu"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0

    @property
    def has_final_norm(self) -> bool:
        """Whether a norm follows the last layer."""
        return self.do_layer_norm_before and not self._remove_final_layer_norm


def _read(keys: OptKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "hidden_size", "num_attention_heads")
    norm = NormSpec(weight=keys.layer_norm_elementwise_affine)
    before, total = (norm, None) if keys.do_layer_norm_before else (None, norm)
    residual = ResidualSpec(before=before, total=total, dropout=keys.dropout)
    layer = LayerSpec(
        attention=multi_head(
            keys.hidden_size,
            keys.num_attention_heads,
            mask=CAUSAL,
            query_bias=keys.enable_bias,
            key_bias=keys.enable_bias,
            value_bias=keys.enable_bias,
            output_bias=keys.enable_bias,
            dropout=keys.attention_dropout,
        ),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(
            d_hidden=keys.ffn_dim,
            activation=activation("activation_function", keys.activation_function),
            bias=keys.enable_bias,
        ),
        feed_forward_residual=residual,
    )
    d_embedding = keys.word_embed_proj_dim or keys.hidden_size
    is_narrow = d_embedding != keys.hidden_size
    decoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(
            vocab_size=keys.vocab_size,
            d_embedding=d_embedding,
            projects="tokens" if is_narrow else "sum",
            projection_bias=not is_narrow,
        ),
        position=LearnedPositions(max_length=keys.max_position_embeddings, offset=_PADDING_ROWS),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=norm if keys.has_final_norm else None,
    )
    back = HeadTransform(d_output=d_embedding, activation="identity", bias=False)
    head = _HEADS.read(FAMILY, keys, weights, transform=back if is_narrow else None)
    return ModelConfig(decoder=decoder, head=head, special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer, position = stack.layers[0], stack.position
    residual = layer.attention_residual
    norm = residual.before or residual.total
    if config.head is None and stack.tokens.d_embedding != stack.d_model:
        raise ConfigError(
            f"d_embedding is {stack.tokens.d_embedding} and d_model {stack.d_model} in config.decoder: OPT projects "
            "its outputs back, with weights that a model without an output head has not"
        )
    keys = OptKeys(
        **common_keys(config),
        hidden_size=stack.d_model,
        num_hidden_layers=stack.n_layers,
        num_attention_heads=layer.attention.n_heads,
        ffn_dim=layer.feed_forward.d_hidden,
        max_position_embeddings=position.max_length if isinstance(position, LearnedPositions) else 1,
        word_embed_proj_dim=stack.tokens.d_embedding,
        do_layer_norm_before=residual.before is not None,
        _remove_final_layer_norm=stack.final_norm is None,
        layer_norm_elementwise_affine=norm is None or norm.weight,
        enable_bias=layer.attention.query_bias,
        activation_function=activation_name(layer.feed_forward.activation),
        dropout=residual.dropout,
        attention_dropout=layer.attention.dropout,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "decoder.layers.{i}", "decoder.layers.{i}"
    norm = "before" if config.output_stack.layers[0].attention_residual.before else "total"
    return (
        *_HEADS.rows(config.head),
        row("decoder.embed_positions.weight", "decoder.position.weight"),
        row("decoder.project_in.weight", "decoder.embedding.projection.weight"),
        row(f"{theirs}.self_attn.q_proj.*", f"{ours}.attention.query.*"),
        row(f"{theirs}.self_attn.k_proj.*", f"{ours}.attention.key.*"),
        row(f"{theirs}.self_attn.v_proj.*", f"{ours}.attention.value.*"),
        row(f"{theirs}.self_attn.out_proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.self_attn_layer_norm.*", f"{ours}.attention_residual.{norm}.*"),
        row(f"{theirs}.fc1.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.fc2.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.final_layer_norm.*", f"{ours}.feed_forward_residual.{norm}.*"),
        row("decoder.final_layer_norm.*", "decoder.final_norm.*"),
        row("decoder.project_out.weight", "head.transform.weight"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    n_positions = weights.size("decoder.embed_positions.weight", 0)
    return {
        "vocab_size": weights.size("decoder.embed_tokens.weight", 0),
        "word_embed_proj_dim": weights.size("decoder.embed_tokens.weight", 1),
        "hidden_size": weights.size("decoder.embed_positions.weight", 1),
        "max_position_embeddings": None if n_positions is None else max(n_positions - _PADDING_ROWS, 0),
        "num_hidden_layers": weights.n_layers("decoder.layers.{i}.fc1.weight") or None,
        "ffn_dim": weights.size("decoder.layers.0.fc1.weight", 0),
    }


FAMILY = Family(
    key="opt",
    label="OPT",
    model_types=("opt",),
    architectures=architectures("OPT", "sequence_classes", "answer_span"),
    keys=OptKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "d_model": "hidden_size",
        "d_hidden": "ffn_dim",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "activation_function",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("model.",),
        roots=_HEADS.roots,
        unused=(r"decoder\.project_out\.weight",),
    ),
)
