"""What the families of encoders have in common: keys of config.json, BERT's plan and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.encoder_heads import TABLE, EncoderHeads
from core_model.checkpoint.families.family import (
    Family,
    Foreign,
    NameTable,
    Row,
    Weights,
    layer_rows,
    name_table,
    read_sizes,
    row,
)
from core_model.checkpoint.families.fields import Count, CountOrNone, Positive, Rate, TextKeys, TokenId
from core_model.checkpoint.families.plan import USUAL_PLACES, Plan, read_plan, write_keys
from core_model.config import LayerSpec, LearnedPositions, MaskSpec, ModelConfig, StackConfig
from core_model.errors import ConfigError

PLACES = {
    **USUAL_PLACES,
    "n_types": "type_vocab_size",
    "activation": "hidden_act",
    "eps": "layer_norm_eps",
    "residual_dropout": "hidden_dropout_prob",
    "embedding_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
"""BERT's dialect."""
NARROW_PLACES = {**PLACES, "d_embedding": "embedding_size"}
"""The same with a token table of another width than the model."""

_TASKS = {
    "ForMaskedLM": "masked_language_model",
    "ForSequenceClassification": "sequence_classes",
    "ForTokenClassification": "token_classes",
    "ForQuestionAnswering": "answer_span",
}


@dataclass(frozen=True, kw_only=True)
class EncoderKeys(TextKeys):
    """The keys of config.json that mean the same in every family that speaks BERT's dialect."""

    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Count
    max_position_embeddings: Count
    type_vocab_size: CountOrNone = 2
    hidden_act: str = "gelu"
    layer_norm_eps: Positive = 1e-12
    hidden_dropout_prob: Rate = 0.1
    attention_probs_dropout_prob: Rate = 0.1
    is_decoder: bool = False
    pad_token_id: TokenId = 0


def bert_plan(keys: EncoderKeys, places: Mapping[str, str] = PLACES, *, typed: bool = True, **changes: Any) -> Plan:
    """BERT's plan: every token sees all, norms after the sums; `typed` where each token has a type.

    ConfigError where there is none then, and for a decoder made of an encoder's parts.
    """
    if keys.is_decoder:
        raise ConfigError("is_decoder is true in config.json: an encoder used as a decoder is not supported")
    if typed and not keys.type_vocab_size:
        raise ConfigError("type_vocab_size is 0 in config.json: every token has a type here, so 1 or more are expected")
    return read_plan(keys, places, **{"mask": MaskSpec(), "post_norm": True, **changes})


def bert_stack(plan: Plan, layers: Iterable[LayerSpec] | None = None, **changes: Any) -> StackConfig:
    """BERT's encoder: tokens, types and positions are normed; all layers are the plan's unless given."""
    settings = {"embedding": plan.embedding(norm=plan.norm), **changes}
    return plan.stack([plan.layer()] * plan.n_layers if layers is None else layers, **settings)


def positions_after_padding(n_rows: int, padding: TokenId) -> LearnedPositions:
    """fairseq's learned positions: the first token stands in the row after that of the padding token's id."""
    offset = (padding if isinstance(padding, int) else 1) + 1
    if n_rows <= offset:
        raise ConfigError(f"max_position_embeddings is {n_rows} in config.json: positions begin in row {offset}")
    return LearnedPositions(max_length=n_rows - offset, offset=offset)


EMBEDDING = (
    row("embeddings.position_embeddings.weight", "encoder.position.weight"),
    row("embeddings.token_type_embeddings.weight", "encoder.embedding.token_type.weight"),
    row("embeddings.LayerNorm.*", "encoder.embedding.norm.*"),
)
PROJECTION = row("embeddings_project.*", "encoder.embedding.projection.*")
PROJECTIONS = {
    "attention.self.query.*": "attention.query.*",
    "attention.self.key.*": "attention.key.*",
    "attention.self.value.*": "attention.value.*",
    "attention.output.dense.*": "attention.output.*",
}
MATRICES = {"intermediate.dense.*": "feed_forward.input.*", "output.dense.*": "feed_forward.output.*"}
NORMS = {
    "attention.output.LayerNorm.*": "attention_residual.total.*",
    "output.LayerNorm.*": "feed_forward_residual.total.*",
}


def encoder_rows(
    names: Mapping[str, str | tuple[str, ...]], *, layer: str = "encoder.layer.{i}", **others: Any
) -> tuple[Row, ...]:
    """Lines of a name table within a `layer` of theirs; `others` are what `layer_rows` takes."""
    return layer_rows(layer, names, **{"ours": "encoder.layers.{i}", **others})


LAYER = encoder_rows({**PROJECTIONS, **MATRICES, **NORMS})


def bert_names(
    heads: EncoderHeads,
    *lines: Row,
    spellings: tuple[tuple[str, str], ...] = (),
    buffers: tuple[str, ...] = (),
    unused: tuple[str, ...] = (),
    **others: Any,
) -> NameTable:
    """A table of the heads and these lines; `spellings`, `buffers` and `unused` come on top of what BERT's files have.

    `others` are what `name_table` takes.
    """
    return name_table(
        heads,
        *lines,
        spellings=((r"\.gamma$", ".weight"), (r"\.beta$", ".bias"), *spellings),
        buffers=(r"embeddings\.position_ids", r"embeddings\.token_type_ids", *buffers),
        unused=(*heads.unused, *unused),
        **others,
    )


def bert_sizes(**axes: tuple[str, int]) -> Callable[[Weights], Mapping[str, object]]:
    """What the shapes of a file with BERT's names tell; `axes` are more or other keys, as `read_sizes` takes them."""
    of_bert = {
        "vocab_size": (TABLE, 0),
        "hidden_size": ("encoder.layer.0.intermediate.dense.weight", 1),
        "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
        "type_vocab_size": ("embeddings.token_type_embeddings.weight", 0),
        "intermediate_size": ("encoder.layer.0.intermediate.dense.weight", 0),
    }
    return read_sizes({**of_bert, **axes}, num_hidden_layers="encoder.layer.{i}.intermediate.dense.weight")


def architectures(name: str, **others: str | None) -> dict[str, str | None]:
    """transformers' classes of a family: the bare model, one for each task, and `others` by the ends of their names."""
    return {f"{name}{ending}": task for ending, task in {"Model": None, **_TASKS, **others}.items()}


def encoder_family(
    heads: EncoderHeads,
    read: Callable[[Any], StackConfig],
    further_keys: Callable[[ModelConfig], Mapping[str, Any]] = lambda config: {},
    *,
    finish: Callable[[ModelConfig, Any, Weights], ModelConfig] = lambda model, keys, weights: model,
    keys: type[TextKeys],
    places: Mapping[str, str] = PLACES,
    **others: Any,
) -> Family:
    """The family whose keys `read` makes an encoder of.

    Of a config, `further_keys` are those that `places` does not name, or not so. `finish` has the last word on a model
    that was read, and is given the keys and the file. `others` are the fields of Family.
    """

    def read_model(found: TextKeys, weights: Weights) -> ModelConfig:
        encoder = read(found)
        head = heads.read(family, found, weights, encoder)
        return finish(ModelConfig(encoder=encoder, head=head, special=found.special), found, weights)

    def write_model(config: ModelConfig) -> Foreign:
        written = keys(**{**_write_keys(config, places), **further_keys(config)})
        return Foreign(keys=written, architecture=heads.class_of(family, config.head))

    usual = {"model_types": (others["key"],), "sizes": bert_sizes()}
    family = Family(keys=keys, places=places, read=read_model, write=write_model, **{**usual, **others})
    return family


def _write_keys(config: ModelConfig, places: Mapping[str, str]) -> dict[str, Any]:
    """The keys that `places` names and those of `TextKeys`, by name; rows of no position (fairseq's) count as one."""
    head, position = config.head, config.output_stack.position
    return {
        **write_keys(config, places),
        places["max_length"]: position.max_length + position.offset if isinstance(position, LearnedPositions) else 512,
        "tie_word_embeddings": head.tied if head and head.task == "masked_language_model" else None,
    }
