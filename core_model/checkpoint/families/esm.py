"""ESM-2 and ESM-1b (Lin et al. 2023, Rives et al. 2021): proteins read by an encoder with norms before sublayers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import FAIRSEQ_MASKED, FAIRSEQ_SEQUENCE, TOKEN_CLASSES, EncoderHeads
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import CountOrNone, Positive, TokenId
from core_model.config import (
    AbsolutePositions,
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
    ZeroedTokens,
    multi_head,
)
from core_model.errors import ConfigError
from core_model.wording import shown

_TRAINED_SHARE = 0.15 * 0.8
"""The share of tokens that were masked in training, for every ESM."""
_FREQUENCIES = (
    "rotary_embeddings.inv_freq",
    "encoder.layer.0.attention.self.rotary_embeddings.inv_freq",
    "encoder.layer.*.attention.self.rotary_embeddings.inv_freq",
)
"""Where the frequencies of rotary positions are stored: once, again in every layer (transformers 4), or under a star
(5)."""
_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": replace(FAIRSEQ_MASKED, biases=("lm_head.bias",)),
        "sequence_classes": FAIRSEQ_SEQUENCE,
        "token_classes": TOKEN_CLASSES,
    },
)


@dataclass(frozen=True, kw_only=True)
class EsmKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    position_embedding_type: str = "absolute"
    rope_theta: Positive = 10000.0
    emb_layer_norm_before: bool | None = None
    token_dropout: bool | None = False
    mask_token_id: CountOrNone | None = None
    pad_token_id: TokenId = 1
    is_folding_model: bool | None = False


def _read(keys: EsmKeys, weights: Weights) -> ModelConfig:
    head_size = encoders.require_encoder(keys)
    if keys.is_folding_model:
        raise ConfigError("is_folding_model is true in config.json: ESMFold is not supported, only its language model")
    is_rotary = keys.position_embedding_type == "rotary"
    residual = ResidualSpec(before=keys.norm, dropout=keys.hidden_dropout_prob)
    layer = LayerSpec(
        attention=multi_head(
            keys.hidden_size,
            keys.num_attention_heads,
            position=_read_rotary(keys, head_size, weights) if is_rotary else None,
            dropout=keys.attention_probs_dropout_prob,
        ),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=keys.intermediate_size, activation="gelu"),
        feed_forward_residual=residual,
    )
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(
            vocab_size=keys.vocab_size,
            d_embedding=keys.hidden_size,
            norm=keys.norm if keys.emb_layer_norm_before else None,
            zeroed=_read_zeroed(keys),
        ),
        position=None if is_rotary else _read_absolute(keys),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=keys.norm,
    )
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm)
    return ModelConfig(encoder=encoder, head=head, special=keys.special)


def _read_rotary(keys: EsmKeys, head_size: int, weights: Weights) -> RotaryPositions:
    """Rotary positions; with the frequencies of the file where they are rounded, as ESM-2 was trained with them."""
    position = RotaryPositions(n_rotated=head_size, base=keys.rope_theta)
    name = next((name for name in _FREQUENCIES if weights.shapes.get(name) == (head_size // 2,)), None)
    if name is None:
        return position
    stored = tuple(weights.values(weights.stored[name]))
    exact = [keys.rope_theta ** -(2 * pair / head_size) for pair in range(head_size // 2)]
    if all(math.isclose(*pair, rel_tol=1e-6) for pair in zip(stored, exact, strict=True)):
        return position
    return replace(position, frequencies=stored)


def _read_absolute(keys: EsmKeys) -> AbsolutePositions:
    if keys.position_embedding_type != "absolute":
        raise ConfigError(
            f"position_embedding_type is {shown(repr(keys.position_embedding_type))} in config.json: "
            "expected 'rotary' (ESM-2) or 'absolute' (ESM-1b)"
        )
    return encoders.positions_after_padding(keys.max_position_embeddings, keys.pad_token_id)


def _read_zeroed(keys: EsmKeys) -> ZeroedTokens | None:
    if not keys.token_dropout:
        return None
    if keys.mask_token_id is None:
        raise ConfigError("config.json has no mask_token_id: with token_dropout, the mask's id must be known")
    return ZeroedTokens(token=keys.mask_token_id, trained_share=_TRAINED_SHARE)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    embedding, layer = stack.tokens, stack.layers[0]
    before, rotary = layer.attention_residual.before, layer.attention.position
    told = {
        **encoders.common_keys(config),
        "layer_norm_eps": before.eps if before else 1e-12,
        "hidden_dropout_prob": layer.attention_residual.dropout,
        "hidden_act": "gelu",
    }
    keys = EsmKeys(
        **told,
        position_embedding_type="absolute" if isinstance(stack.position, LearnedPositions) else "rotary",
        rope_theta=rotary.base if isinstance(rotary, RotaryPositions) else 10000.0,
        emb_layer_norm_before=embedding.norm is not None,
        token_dropout=embedding.zeroed is not None,
        mask_token_id=embedding.zeroed.token if embedding.zeroed else None,
    )
    return encoders.foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "encoder.layer.{i}", "encoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        row("embeddings.position_embeddings.weight", "encoder.position.weight"),
        row("embeddings.layer_norm.*", "encoder.embedding.norm.*"),
        row(f"{theirs}.attention.LayerNorm.*", f"{ours}.attention_residual.before.*"),
        *(row(f"{theirs}.attention.self.{part}.*", f"{ours}.attention.{part}.*") for part in ("query", "key", "value")),
        row(f"{theirs}.attention.output.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.LayerNorm.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.intermediate.dense.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.output.dense.*", f"{ours}.feed_forward.output.*"),
        row("encoder.emb_layer_norm_after.*", "encoder.final_norm.*"),
    )


FAMILY = Family(
    key="esm",
    label="ESM",
    model_types=("esm",),
    architectures={
        name: task
        for name, task in encoders.architectures("Esm").items()
        if task != "answer_span" and name != "EsmForMultipleChoice"
    },
    keys=EsmKeys,
    read=_read,
    write=_write,
    sizes=encoders.sizes,
    places={name: key for name, key in encoders.PLACES.items() if name not in ("n_types", "activation")},
    names=NameTable(
        rows=_rows,
        prefixes=("esm.",),
        roots=_HEADS.roots,
        spellings=encoders.OLD_SPELLINGS,
        buffers=(*encoders.BUFFERS, r"(encoder\.layer\.(\d+|\*)\.attention\.self\.)?rotary_embeddings\.inv_freq"),
        unused=(*_HEADS.unused, r"contact_head\..*", r"embeddings\.position_embeddings\.weight"),
    ),
    markers=(r"(esm\.)?encoder\.emb_layer_norm_after\.weight",),
)
