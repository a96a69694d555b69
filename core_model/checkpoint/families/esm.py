"""ESM-2 and ESM-1b (Lin et al. 2023, Rives et al. 2021): proteins read by an encoder with norms before sublayers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import FAIRSEQ_MASKED, FAIRSEQ_SEQUENCE, TOKEN_CLASSES, EncoderHeads
from core_model.checkpoint.families.family import Weights, row
from core_model.checkpoint.families.fields import CountOrNone, Positive, TokenId
from core_model.config import LearnedPositions, ModelConfig, RotaryPositions, StackConfig, ZeroedTokens
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
    forms={
        "masked_language_model": replace(FAIRSEQ_MASKED, biases=("lm_head.bias",)),
        "sequence_classes": FAIRSEQ_SEQUENCE,
        "token_classes": TOKEN_CLASSES,
    },
)
_PLACES = {
    fact: key for fact, key in encoders.PLACES.items() if fact not in ("n_types", "activation", "embedding_dropout")
}


@dataclass(frozen=True, kw_only=True)
class EsmKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    type_vocab_size: CountOrNone = 0
    position_embedding_type: str = "absolute"
    rope_theta: Positive = 10000.0
    emb_layer_norm_before: bool | None = None
    token_dropout: bool | None = False
    mask_token_id: CountOrNone | None = None
    pad_token_id: TokenId = 1
    is_folding_model: bool | None = False


def _read(keys: EsmKeys) -> StackConfig:
    if keys.is_folding_model:
        raise ConfigError("is_folding_model is true in config.json: ESMFold is not supported, only its language model")
    plan = encoders.bert_plan(keys, _PLACES, typed=False, activation="gelu", post_norm=False)
    is_rotary = keys.position_embedding_type == "rotary"
    if is_rotary:
        plan = replace(plan, position=RotaryPositions(n_rotated=plan.head_size, base=keys.rope_theta))
    return plan.stack(
        [plan.layer()] * plan.n_layers,
        embedding=plan.embedding(norm=plan.norm if keys.emb_layer_norm_before else None, zeroed=_read_zeroed(keys)),
        position=None if is_rotary else _read_absolute(keys),
    )


def _read_absolute(keys: EsmKeys) -> LearnedPositions:
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


def _with_stored_frequencies(config: ModelConfig, keys: EsmKeys, weights: Weights) -> ModelConfig:
    """The model with the frequencies of the file where they are rounded, as ESM-2 was trained with them."""
    stack = config.output_stack
    attention = stack.layers[0].attention
    n_pairs = attention.head_size // 2
    name = next((name for name in _FREQUENCIES if weights.shapes.get(name) == (n_pairs,)), None)
    if name is None or not isinstance(attention.position, RotaryPositions):
        return config
    stored = tuple(weights.values(weights.stored[name]))
    exact = [keys.rope_theta ** -(2 * pair / attention.head_size) for pair in range(n_pairs)]
    if all(math.isclose(*pair, rel_tol=1e-6) for pair in zip(stored, exact, strict=True)):
        return config
    position = replace(attention.position, frequencies=stored)
    layer = replace(stack.layers[0], attention=replace(attention, position=position))
    return replace(config, encoder=replace(stack, layers=(layer,) * stack.n_layers))


def _further_keys(config: ModelConfig) -> dict[str, Any]:
    stack = config.output_stack
    rotary, zeroed = stack.layers[0].attention.position, stack.tokens.zeroed
    return {
        "position_embedding_type": "absolute" if isinstance(stack.position, LearnedPositions) else "rotary",
        "rope_theta": rotary.base if isinstance(rotary, RotaryPositions) else 10000.0,
        "emb_layer_norm_before": stack.tokens.norm is not None,
        "token_dropout": zeroed is not None,
        "mask_token_id": zeroed.token if zeroed else None,
    }


_LAYER = {
    "attention.LayerNorm.*": "attention_residual.before.*",
    **encoders.PROJECTIONS,
    "LayerNorm.*": "feed_forward_residual.before.*",
    **encoders.MATRICES,
}

FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    _further_keys,
    finish=_with_stored_frequencies,
    key="esm",
    label="ESM",
    architectures={name: task for name, task in encoders.architectures("Esm").items() if task != "answer_span"},
    keys=EsmKeys,
    places=_PLACES,
    names=encoders.bert_names(
        _HEADS,
        row("embeddings.position_embeddings.weight", "encoder.position.weight"),
        row("embeddings.layer_norm.*", "encoder.embedding.norm.*"),
        *encoders.encoder_rows(_LAYER),
        row("encoder.emb_layer_norm_after.*", "encoder.final_norm.*"),
        prefixes=("esm.",),
        buffers=(r"(encoder\.layer\.(\d+|\*)\.attention\.self\.)?rotary_embeddings\.inv_freq",),
        unused=(r"contact_head\..*", r"embeddings\.position_embeddings\.weight"),
    ),
    markers=(r"(esm\.)?encoder\.emb_layer_norm_after\.weight",),
)
