"""DeBERTa (He et al. 2021): content and distance meet in the scores. Projections of a head lie side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.encoder_heads import (
    ANSWER_SPAN,
    BERT_MASKED,
    TOKEN_CLASSES,
    EncoderHeads,
    HeadForm,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, CountOrNone, Positive, activation_name
from core_model.config import (
    DisentangledPositions,
    DistanceTable,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    StackConfig,
)
from core_model.errors import ConfigError
from core_model.wording import shown

_CONTENT_TO_POSITION, _POSITION_TO_CONTENT = "c2p", "p2c"
HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": BERT_MASKED,
        "sequence_classes": HeadForm(
            transform="pooler.dense", activation_key="pooler_hidden_act", output="classifier", pooling="first"
        ),
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)
_SPELLINGS = (
    *encoders.OLD_SPELLINGS,
    (r"^lm_predictions\.lm_head\.(dense|LayerNorm)\.", r"cls.predictions.transform.\1."),
    (r"^lm_predictions\.lm_head\.bias$", "cls.predictions.bias"),
)
"""Microsoft's own names of the masked-token head beside those of transformers' first port."""


@dataclass(frozen=True, kw_only=True)
class DebertaKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    type_vocab_size: CountOrNone = 0
    layer_norm_eps: Positive = 1e-7
    relative_attention: bool = False
    max_relative_positions: int = -1
    position_biased_input: bool = True
    pos_att_type: list[str] | str | None = None
    pooler_hidden_act: str = "gelu"
    embedding_size: Count | None = None
    talking_head: bool = False

    @property
    def terms(self) -> list[str]:
        """Which scores with distance there are: c2p, p2c, both or none."""
        kinds = self.pos_att_type or []
        return [kind.strip().lower() for kind in (kinds.split("|") if isinstance(kinds, str) else kinds)]

    @property
    def farthest(self) -> int:
        """The largest distance told apart from others."""
        return self.max_relative_positions if self.max_relative_positions > 0 else self.max_position_embeddings


def require_readable(keys: DebertaKeys) -> int:
    """The size of a head; ConfigError for what is not computed here."""
    if keys.talking_head:
        raise ConfigError("talking_head is true in config.json: attention mixed between heads is not supported")
    if keys.embedding_size not in (None, keys.hidden_size):
        raise ConfigError(
            f"embedding_size is {keys.embedding_size} in config.json: a token table of another width than hidden_size, "
            f"{keys.hidden_size}, is not supported"
        )
    if unknown := [term for term in keys.terms if term not in (_CONTENT_TO_POSITION, _POSITION_TO_CONTENT)]:
        raise ConfigError(f"pos_att_type has {shown(repr(unknown[0]))} in config.json: expected c2p and p2c")
    return encoders.require_encoder(keys)


def disentangled(keys: DebertaKeys, span: int, **options: Any) -> DisentangledPositions | None:
    """How distance enters the scores; None where it does not."""
    if not keys.relative_attention or not keys.terms:
        return None
    return DisentangledPositions(
        span=span,
        content_to_position=_CONTENT_TO_POSITION in keys.terms,
        position_to_content=_POSITION_TO_CONTENT in keys.terms,
        **options,
    )


def scaled_layer(keys: DebertaKeys, head_size: int, position: DisentangledPositions | None) -> LayerSpec:
    """BERT's layer; its scores are divided by the root of the head size times the number of terms."""
    layer = encoders.post_norm_layer(keys, position)
    scale = (head_size * (1 + len(set(keys.terms)))) ** -0.5
    return replace(layer, attention=replace(layer.attention, scale=scale))


def stack_of(keys: DebertaKeys, layer: LayerSpec, distances: DistanceTable | None) -> StackConfig:
    """The encoder, with positions added to the tokens where the config says so."""
    return StackConfig(
        d_model=keys.hidden_size,
        embedding=encoders.embedding(keys),
        position=LearnedPositions(max_length=keys.max_position_embeddings) if keys.position_biased_input else None,
        layers=(layer,) * keys.num_hidden_layers,
        distances=distances if keys.relative_attention else None,
    )


def read_head(family: Family, keys: DebertaKeys, weights: Weights) -> HeadSpec | None:
    """The output head. Microsoft's own for masked tokens is tied to the token table whatever the config says."""
    if "lm_predictions." in weights.stored.get("cls.predictions.bias", ""):
        keys = replace(keys, tie_word_embeddings=True)
    return HEADS.read(family, keys, weights, d_model=keys.hidden_size, norm=keys.norm)


def common_keys(config: ModelConfig) -> dict[str, Any]:
    """The `DebertaKeys` of a config, by name."""
    stack, head = config.output_stack, config.head
    position = stack.layers[0].attention.position
    terms = position if isinstance(position, DisentangledPositions) else None
    return {
        **encoders.common_keys(config),
        "relative_attention": stack.distances is not None,
        "position_biased_input": isinstance(stack.position, LearnedPositions),
        "pos_att_type": [
            *([_CONTENT_TO_POSITION] if terms and terms.content_to_position else []),
            *([_POSITION_TO_CONTENT] if terms and terms.position_to_content else []),
        ],
        "pooler_hidden_act": _pooler_activation(head),
    }


def _pooler_activation(head: HeadSpec | None) -> str:
    transform = head.transform if head is not None and head.task == "sequence_classes" else None
    return activation_name(transform.activation) if transform else "gelu"


def name_table(rows: Callable[[ModelConfig], Sequence[Row]]) -> NameTable:
    """The names that both versions share, beside their rows."""
    return NameTable(
        rows=rows,
        prefixes=("deberta.",),
        roots=HEADS.roots,
        spellings=_SPELLINGS,
        buffers=encoders.BUFFERS,
        unused=(
            *HEADS.unused,
            r"mask_predictions\..*",
            r"embeddings\.position_embeddings\.weight",
            r"encoder\.LayerNorm\..*",  # of vectors of distances, also where there are none
        ),
    )


def _read(keys: DebertaKeys, weights: Weights) -> ModelConfig:
    head_size = require_readable(keys)
    layer = scaled_layer(keys, head_size, disentangled(keys, keys.farthest, key_bias=False))
    layer = replace(layer, attention=replace(layer.attention, key_bias=False))
    encoder = stack_of(keys, layer, DistanceTable(n_rows=2 * keys.farthest))
    return ModelConfig(encoder=encoder, head=read_head(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    distances = config.output_stack.distances
    keys = DebertaKeys(
        **common_keys(config), max_relative_positions=distances.n_rows // 2 if distances is not None else -1
    )
    return encoders.foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "encoder.layer.{i}.attention", "encoder.layers.{i}"
    heads = Joined(n_groups=config.output_stack.layers[0].attention.n_heads)
    fused = (f"{ours}.attention.{part}.weight" for part in ("query", "key", "value"))
    return (
        *HEADS.rows(config.head),
        *encoders.embedding_rows(),
        row("encoder.rel_embeddings.weight", "encoder.distance.weight"),
        row(f"{theirs}.self.in_proj.weight", *fused, conversion=heads),
        row(f"{theirs}.self.q_bias", f"{ours}.attention.query.bias"),
        row(f"{theirs}.self.v_bias", f"{ours}.attention.value.bias"),
        row(f"{theirs}.self.pos_proj.*", f"{ours}.attention.distance_key.*"),
        row(f"{theirs}.self.pos_q_proj.*", f"{ours}.attention.distance_query.*"),
        row(f"{theirs}.output.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.output.LayerNorm.*", f"{ours}.attention_residual.total.*"),
        *encoders.feed_forward_rows(),
    )


def sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes of a file tell."""
    return {**encoders.sizes(weights), "hidden_size": weights.size(encoders.TABLE, 1)}


FAMILY = Family(
    key="deberta",
    label="DeBERTa",
    model_types=("deberta",),
    architectures={
        name: task for name, task in encoders.architectures("Deberta").items() if name != "DebertaForMultipleChoice"
    },
    keys=DebertaKeys,
    read=_read,
    write=_write,
    sizes=sizes,
    places=encoders.PLACES,
    names=name_table(_rows),
    markers=(r"(deberta\.)?encoder\.layer\.0\.attention\.self\.in_proj\.weight",),
)
