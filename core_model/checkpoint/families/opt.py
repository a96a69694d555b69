"""OPT (Zhang et al. 2022): GPT-2's layers under BART's names; 350M norms after sums and has a narrow token table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import DecoderHeads, DecoderKeys, architectures, decoder_family
from core_model.checkpoint.families.fairseq import layer_names
from core_model.checkpoint.families.family import Row, Weights, layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, Rate
from core_model.checkpoint.families.plan import USUAL_PLACES, read_plan, write_keys
from core_model.config import HeadTransform, LearnedPositions, ModelConfig, NormSpec, StackConfig

_HEADS = DecoderHeads(table="decoder.embed_tokens.weight")
_PLACES = {
    **USUAL_PLACES,
    "d_embedding": "word_embed_proj_dim",
    "d_hidden": "ffn_dim",
    "activation": "activation_function",
    "attention_dropout": "attention_dropout",
    "residual_dropout": "dropout",
}
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
    def d_embedding(self) -> int:
        """The width of the token table."""
        return self.word_embed_proj_dim or self.hidden_size

    @property
    def has_final_norm(self) -> bool:
        """Whether a norm follows the last layer."""
        return self.do_layer_norm_before and not self._remove_final_layer_norm

    @property
    def head_transform(self) -> HeadTransform | None:
        """Back to the width of a narrow token table."""
        if self.d_embedding == self.hidden_size:
            return None
        return HeadTransform(d_output=self.d_embedding, activation="identity", bias=False)


def _read(keys: OptKeys) -> StackConfig:
    norm = NormSpec(weight=keys.layer_norm_elementwise_affine)
    plan = read_plan(keys, _PLACES, norm=norm, bias=keys.enable_bias, post_norm=not keys.do_layer_norm_before)
    is_narrow = plan.d_embedding != plan.d_model
    return plan.stack(
        [plan.layer()] * plan.n_layers,
        embedding=plan.embedding(projects="tokens" if is_narrow else "sum", projection_bias=not is_narrow),
        position=LearnedPositions(max_length=keys.max_position_embeddings, offset=_PADDING_ROWS),
        final_norm=norm if keys.has_final_norm else None,
    )


def _without_head(model: ModelConfig, keys: OptKeys) -> ModelConfig:
    """The model; without a head its hidden states end as wide as a narrow token table."""
    if model.head is not None or keys.head_transform is None:
        return model
    return replace(model, decoder=replace(model.output_stack, d_output=keys.d_embedding))


def _write(config: ModelConfig) -> OptKeys:
    stack = config.output_stack
    layer = stack.layers[0]
    norm = layer.attention_residual.before or layer.attention_residual.total
    return OptKeys(
        **write_keys(config, _PLACES),
        do_layer_norm_before=layer.attention_residual.before is not None,
        _remove_final_layer_norm=stack.final_norm is None,
        layer_norm_elementwise_affine=norm is None or norm.weight,
        enable_bias=layer.attention.query_bias,
    )


def _layers(config: ModelConfig) -> tuple[Row, ...]:
    norm = "before" if config.output_stack.layers[0].attention_residual.before else "total"
    return layer_rows("decoder.layers.{i}", layer_names(norm))


_SIZES = read_sizes(
    {
        "vocab_size": (_HEADS.table, 0),
        "word_embed_proj_dim": (_HEADS.table, 1),
        "hidden_size": ("decoder.embed_positions.weight", 1),
        "max_position_embeddings": ("decoder.embed_positions.weight", 0),
        "ffn_dim": ("decoder.layers.0.fc1.weight", 0),
    },
    num_hidden_layers="decoder.layers.{i}.fc1.weight",
)


def _sizes(weights: Weights) -> Mapping[str, object]:
    n_rows = weights.size("decoder.embed_positions.weight", 0)
    return {**_SIZES(weights), "max_position_embeddings": None if n_rows is None else max(n_rows - _PADDING_ROWS, 0)}


FAMILY = decoder_family(
    _HEADS,
    _read,
    _write,
    finish=_without_head,
    key="opt",
    label="OPT",
    architectures=architectures("OPT", "sequence_classes", "answer_span"),
    keys=OptKeys,
    sizes=_sizes,
    places=_PLACES,
    names=name_table(
        _HEADS,
        row("decoder.embed_positions.weight", "decoder.position.weight"),
        row("decoder.project_in.weight", "decoder.embedding.projection.weight"),
        row("decoder.final_layer_norm.*", "decoder.final_norm.*"),
        row("decoder.project_out.weight", "decoder.output.weight"),
        row("decoder.project_out.weight", "head.transform.weight"),
        of_config=_layers,
        prefixes=("model.",),
    ),
)
