"""DeBERTa (He et al. 2021): content and distance meet in the scores. Projections of a head lie side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.encoder_heads import BARE, BERT_MASKED, TABLE, EncoderHeads, HeadForm
from core_model.checkpoint.families.family import NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, CountOrNone, Positive, activation_name
from core_model.checkpoint.families.plan import Plan
from core_model.config import DisentangledPositions, DistanceTable, LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_CONTENT_TO_POSITION, _POSITION_TO_CONTENT = "c2p", "p2c"
_POOLED = HeadForm(transform="pooler.dense", activation_key="pooler_hidden_act", output="classifier", pooling="first")
HEADS = EncoderHeads(forms={"masked_language_model": BERT_MASKED, "sequence_classes": _POOLED, **BARE})
SIZES = encoders.bert_sizes(hidden_size=(TABLE, 1))
_SPELLINGS = (
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


def deberta_plan(keys: DebertaKeys, span: int, **options: Any) -> Plan:
    """BERT's plan, with `span` distances to each side in the scores; `options` are fields of these positions.

    ConfigError for what is not computed here.
    """
    if keys.talking_head:
        raise ConfigError("talking_head is true in config.json: attention mixed between heads is not supported")
    if keys.embedding_size not in (None, keys.hidden_size):
        raise ConfigError(
            f"embedding_size is {keys.embedding_size} in config.json: a token table of another width than hidden_size, "
            f"{keys.hidden_size}, is not supported"
        )
    if unknown := [term for term in keys.terms if term not in (_CONTENT_TO_POSITION, _POSITION_TO_CONTENT)]:
        raise ConfigError(f"pos_att_type has {shown(repr(unknown[0]))} in config.json: expected c2p and p2c")
    plan = encoders.bert_plan(keys, typed=False)
    if not keys.relative_attention or not keys.terms:
        return plan
    position = DisentangledPositions(
        span=span,
        content_to_position=_CONTENT_TO_POSITION in keys.terms,
        position_to_content=_POSITION_TO_CONTENT in keys.terms,
        **options,
    )
    return replace(plan, position=position)


def deberta_stack(
    keys: DebertaKeys, plan: Plan, distances: DistanceTable, *, key_bias: bool = True, **changes: Any
) -> StackConfig:
    """BERT's encoder; its scores are divided by the root of the head size times the number of their terms."""
    scale = (plan.head_size * (1 + len(set(keys.terms)))) ** -0.5
    return encoders.bert_stack(
        plan,
        [plan.layer(attention=plan.attention(scale=scale, key_bias=key_bias))] * plan.n_layers,
        position=LearnedPositions(max_length=keys.max_position_embeddings) if keys.position_biased_input else None,
        distances=distances if keys.relative_attention else None,
        **changes,
    )


def further_keys(config: ModelConfig) -> dict[str, Any]:
    """The keys of a config about distances, and of the pooler, by name."""
    stack, head = config.output_stack, config.head
    position = stack.layers[0].attention.position
    terms = position if isinstance(position, DisentangledPositions) else None
    transform = head.transform if head is not None and head.task == "sequence_classes" else None
    return {
        "relative_attention": stack.distances is not None,
        "max_relative_positions": stack.distances.n_rows // 2 if stack.distances is not None else -1,
        "position_biased_input": isinstance(stack.position, LearnedPositions),
        "pos_att_type": [
            *([_CONTENT_TO_POSITION] if terms and terms.content_to_position else []),
            *([_POSITION_TO_CONTENT] if terms and terms.position_to_content else []),
        ],
        "pooler_hidden_act": activation_name(transform.activation) if transform else "gelu",
    }


def deberta_names(*lines: Row, **others: Any) -> NameTable:
    """A table of the names that both versions share, and these lines."""
    return encoders.bert_names(
        HEADS,
        *encoders.EMBEDDING,
        row("encoder.rel_embeddings.weight", "encoder.distance.weight"),
        *encoders.encoder_rows(
            {"attention.output.dense.*": "attention.output.*", **encoders.MATRICES, **encoders.NORMS}
        ),
        *lines,
        prefixes=("deberta.",),
        spellings=_SPELLINGS,
        unused=(
            r"mask_predictions\..*",
            r"embeddings\.position_embeddings\.weight",
            r"encoder\.LayerNorm\..*",  # of vectors of distances, also where there are none
        ),
        **others,
    )


def tied_as_stored(config: ModelConfig, keys: DebertaKeys, weights: Weights) -> ModelConfig:
    """The model; Microsoft's own head for masked tokens is tied to the token table whatever the config says."""
    head, is_their_own = config.head, "lm_predictions." in weights.stored.get("cls.predictions.bias", "")
    if head is None or head.task != "masked_language_model" or not is_their_own:
        return config
    tied = weights.ties(f"{BERT_MASKED.output}.weight", HEADS.table, stated=True, default=True)
    return replace(config, head=replace(head, tied=tied))


def _read(keys: DebertaKeys) -> StackConfig:
    plan = deberta_plan(keys, keys.farthest, key_bias=False)
    return deberta_stack(keys, plan, DistanceTable(n_rows=2 * keys.farthest), key_bias=False)


def _fused(config: ModelConfig) -> tuple[Row, ...]:
    """The line for queries, keys and values, head by head in one matrix."""
    by_head = Joined(n_groups=config.output_stack.layers[0].attention.n_heads)
    parts = ("attention.query.weight", "attention.key.weight", "attention.value.weight")
    return encoders.encoder_rows({"attention.self.in_proj.weight": parts}, conversion=by_head)


FAMILY = encoders.encoder_family(
    HEADS,
    _read,
    further_keys,
    finish=tied_as_stored,
    key="deberta",
    label="DeBERTa",
    architectures=encoders.architectures("Deberta"),
    keys=DebertaKeys,
    sizes=SIZES,
    names=deberta_names(
        *encoders.encoder_rows(
            {
                "attention.self.q_bias": "attention.query.bias",
                "attention.self.v_bias": "attention.value.bias",
                "attention.self.pos_proj.*": "attention.distance_key.*",
                "attention.self.pos_q_proj.*": "attention.distance_query.*",
            }
        ),
        of_config=_fused,
    ),
    markers=(r"(deberta\.)?encoder\.layer\.0\.attention\.self\.in_proj\.weight",),
)
