"""T5 and its relatives (Raffel et al. 2020): distances as score biases, scores without a scale, no biases.

Flan-T5 and T5 1.1 are gated, with a head of their own; mT5 never scales its logits; UMT5 has a table of distances in
every layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.fairseq import special_and_start_keys
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, layer_rows, read_sizes, row
from core_model.checkpoint.families.fields import (
    Count,
    Positive,
    Rate,
    SpecialKeys,
    TokenId,
    activation,
    activation_name,
    class_names,
    special_tokens,
)
from core_model.checkpoint.families.plan import Plan, read_plan, write_stack
from core_model.checkpoint.families.seq2seq import (
    head_rows,
    is_shared,
    own_tables_first,
    read_head,
    table_remarks,
    table_rows,
    ties_head,
)
from core_model.config import (
    Activation,
    BucketedPositions,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    MaskSpec,
    ModelConfig,
    NormSpec,
    StackConfig,
)
from core_model.errors import ConfigError

_TABLE, _HEAD, _GATED = "shared.weight", "lm_head.weight", "gated-"
_MAPS = {"q": "query", "k": "key", "v": "value", "o": "output"}
_PLACES = {
    "n_layers": "num_layers",
    "n_heads": "num_heads",
    "head_size": "d_kv",
    "d_model": "d_model",
    "d_hidden": "d_ff",
    "vocab_size": "vocab_size",
    "eps": "layer_norm_epsilon",
    "embedding_dropout": "dropout_rate",
    "residual_dropout": "dropout_rate",
    "attention_dropout": "dropout_rate",
}


@dataclass(frozen=True, kw_only=True)
class T5Keys(SpecialKeys):
    """The keys of config.json that decide what is computed.

    transformers 4 scales the logits where the head is tied, 5 where scale_decoder_outputs says so. What
    feed_forward_proj says, dense_act_fn and is_gated_act say otherwise where they are written.
    """

    vocab_size: Count
    d_model: Count
    num_layers: Count
    num_heads: Count
    d_ff: Count
    d_kv: Count = 64
    num_decoder_layers: Count | None = None
    relative_attention_num_buckets: Count = 32
    relative_attention_max_distance: Count = 128
    feed_forward_proj: str = "relu"
    dense_act_fn: str | None = None
    is_gated_act: bool | None = None
    layer_norm_epsilon: Positive = 1e-6
    dropout_rate: Rate = 0.1
    scale_decoder_outputs: bool | None = None
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    eos_token_id: TokenId = 1
    pad_token_id: TokenId = 0
    decoder_start_token_id: TokenId = None

    @property
    def shares_table(self) -> bool:
        """Both stacks are always meant to have one token table."""
        return True

    @property
    def norm(self) -> NormSpec:
        """Every norm of the model."""
        return NormSpec(kind="rms", eps=self.layer_norm_epsilon, bias=False)


@dataclass(frozen=True, kw_only=True)
class Mt5Keys(T5Keys):
    """The same, gated unless said otherwise."""

    feed_forward_proj: str = "gated-gelu"


def _read(family: Family, keys: T5Keys, weights: Weights, *, own_tables: bool, scales: bool) -> ModelConfig:
    head = _read_head(family, keys, weights, scales=scales)
    gated, act = _read_activation(keys)
    plan = read_plan(keys, _PLACES, norm=keys.norm, activation=act, gated=gated, bias=False)
    has_decoder = _has_decoder(family, weights)
    n_decoder_layers = keys.num_decoder_layers or keys.num_layers
    start = keys.pad_token_id if keys.decoder_start_token_id is None else keys.decoder_start_token_id
    return ModelConfig(
        encoder=plan.stack(_layers(keys, plan, plan.n_layers, is_decoder=False, own_tables=own_tables)),
        decoder=plan.stack(_layers(keys, plan, n_decoder_layers, is_decoder=True, own_tables=own_tables))
        if has_decoder
        else None,
        shared_embedding=has_decoder and is_shared(weights),
        head=head,
        special=special_tokens(
            begin=keys.bos_token_id, end=keys.eos_token_id, padding=keys.pad_token_id, decoder_start=start
        ),
    )


def _has_decoder(family: Family, weights: Weights) -> bool:
    """As the architecture says, else whether one is stored."""
    if weights.architecture in family.architectures:
        return not (weights.architecture or "").endswith(("EncoderModel", "ForTokenClassification"))
    return "decoder.final_layer_norm.weight" in weights


def _layers(keys: T5Keys, plan: Plan, n_layers: int, *, is_decoder: bool, own_tables: bool) -> tuple[LayerSpec, ...]:
    buckets = BucketedPositions(
        n_buckets=keys.relative_attention_num_buckets,
        max_distance=keys.relative_attention_max_distance,
        bidirectional=not is_decoder,
    )
    later = buckets if own_tables else replace(buckets, from_layer=0)
    first, other = (_layer(plan, position, is_decoder=is_decoder) for position in (buckets, later))
    return (first, *(other,) * (n_layers - 1))


def _layer(plan: Plan, position: BucketedPositions, *, is_decoder: bool) -> LayerSpec:
    layer = plan.layer(
        attention=plan.attention(mask=MaskSpec(causal=is_decoder), position=position, scale=1.0),
        feed_forward=plan.feed_forward(dropout=plan.residual_dropout),
    )
    crossing = plan.attention(mask=MaskSpec(), scale=1.0)
    return replace(layer, cross_attention=crossing, cross_residual=plan.residual()) if is_decoder else layer


def _read_activation(keys: T5Keys) -> tuple[bool, Activation]:
    """Whether it is gated, and the activation: `gated-gelu` means the tanh approximation, other names what they say."""
    told = keys.feed_forward_proj
    gated, name = told.startswith(_GATED), "gelu_new" if told == "gated-gelu" else told.removeprefix(_GATED)
    if keys.is_gated_act is not None:
        gated = keys.is_gated_act
    if keys.dense_act_fn is not None:
        return gated, activation("dense_act_fn", keys.dense_act_fn)
    return gated, activation("feed_forward_proj", name)


def _write_feed_forward(spec: FeedForwardSpec) -> str:
    if not spec.gated:
        return activation_name(spec.activation)
    names = {"gelu_tanh": "gelu", "gelu": "gelu_python"}
    return _GATED + (names.get(spec.activation) or activation_name(spec.activation))


def _read_head(family: Family, keys: T5Keys, weights: Weights, *, scales: bool) -> HeadSpec | None:
    evidence = {
        "language_model": _HEAD,
        "sequence_classes": "classification_head.dense.weight",
        "token_classes": "classifier.weight",
        "answer_span": "qa_outputs.weight",
    }
    task = weights.task(family, evidence)
    if task != "language_model":
        return read_head(task, keys, weights)
    tied = ties_head(weights, keys.tie_word_embeddings)
    says_scaled = keys.scale_decoder_outputs
    is_scaled = scales and (keys.tie_word_embeddings is not False if says_scaled is None else says_scaled)
    scale = keys.d_model**-0.5 if is_scaled else 1.0
    return HeadSpec(n_outputs=keys.vocab_size, task="language_model", tied=tied, scale=scale)


def _write(family: Family, config: ModelConfig) -> Foreign:
    encoder, decoder, head = config.encoder, config.decoder, config.head
    if encoder is None:
        raise ConfigError("the model has no encoder: T5 has one, with or without a decoder")
    layer, position = encoder.layers[0], encoder.layers[0].attention.position
    buckets = position if isinstance(position, BucketedPositions) else BucketedPositions()
    is_language_model = head is not None and head.task == "language_model"
    keys = family.keys(
        **write_stack(encoder, _PLACES),
        **special_and_start_keys(config.special),
        num_decoder_layers=decoder.n_layers if decoder else None,
        relative_attention_num_buckets=buckets.n_buckets,
        relative_attention_max_distance=buckets.max_distance,
        feed_forward_proj=_write_feed_forward(layer.feed_forward),
        scale_decoder_outputs=head.scale != 1 if head is not None and is_language_model else None,
        tie_word_embeddings=head.tied if head is not None and is_language_model else None,
        id2label=class_names(head),
    )
    task = head.task if head else None
    if decoder is None and task is None:
        bare = next(name for name in family.architectures if name.endswith("EncoderModel"))
        return Foreign(keys=keys, architecture=bare)
    return Foreign(keys=keys, architecture=family.architecture_for(task))


def _rows(config: ModelConfig, *, has_shared: bool = False) -> tuple[Row, ...]:
    return (
        *table_rows(config, has_shared=has_shared),
        *(line for name, stack in config.stacks.items() for line in _stack_rows(name, stack)),
        *head_rows(config.head, has_shared=has_shared),
    )


def _stack_rows(name: str, stack: StackConfig) -> tuple[Row, ...]:
    last = "1" if name == "encoder" else "2"
    gated = stack.layers[0].feed_forward.gated
    inputs = {"wi_0": "gate", "wi_1": "input"} if gated else {"wi": "input"}
    names = {
        "0.layer_norm.*": "attention_residual.before.*",
        "0.SelfAttention.relative_attention_bias.*": "attention.position_bias.*",
        **{f"0.SelfAttention.{theirs}.*": f"attention.{ours}.*" for theirs, ours in _MAPS.items()},
        "1.layer_norm.*": "cross_residual.before.*",
        **{f"1.EncDecAttention.{theirs}.*": f"cross_attention.{ours}.*" for theirs, ours in _MAPS.items()},
        f"{last}.layer_norm.*": "feed_forward_residual.before.*",
        **{f"{last}.DenseReluDense.{theirs}.*": f"feed_forward.{ours}.*" for theirs, ours in inputs.items()},
        f"{last}.DenseReluDense.wo.*": "feed_forward.output.*",
    }
    return (
        *layer_rows(f"{name}.block.{{i}}.layer", names, ours=f"{name}.layers.{{i}}"),
        row(f"{name}.final_layer_norm.weight", f"{name}.final_norm.weight"),
    )


_SIZES = read_sizes(
    {
        "vocab_size": (_TABLE, 0),
        "d_model": (_TABLE, 1),
        "d_ff": ("encoder.block.0.layer.1.DenseReluDense.wo.weight", 1),
    },
    num_layers="encoder.block.{i}.layer.0.layer_norm.weight",
    num_decoder_layers="decoder.block.{i}.layer.0.layer_norm.weight",
)


def _family(
    key: str, label: str, class_name: str, *, keys: type = Mt5Keys, own_tables: bool = False, scales: bool = True
) -> Family:
    """One of the three; each reads and writes as itself."""

    def read(keys: T5Keys, weights: Weights) -> ModelConfig:
        return _read(family, keys, weights, own_tables=own_tables, scales=scales)

    family = Family(
        key=key,
        label=label,
        model_types=(key,),
        architectures={
            f"{class_name}Model": None,
            f"{class_name}EncoderModel": None,
            f"{class_name}ForConditionalGeneration": "language_model",
            f"{class_name}ForSequenceClassification": "sequence_classes",
            f"{class_name}ForTokenClassification": "token_classes",
            f"{class_name}ForQuestionAnswering": "answer_span",
        },
        keys=keys,
        read=read,
        write=lambda config: _write(family, config),
        sizes=_SIZES,
        places={**_PLACES, "activation": "feed_forward_proj"},
        names=NameTable(
            rows=_rows,
            dialects=(own_tables_first(_rows),),
            prefixes=("transformer.",),
            written_prefixes={"language_model": "", "answer_span": ""},
            roots=("lm_head.", "classification_head.", "classifier.", "qa_outputs."),
            buffers=(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",),
            unused=(r"lm_head\..*", r"classification_head\..*", r"classifier\..*", r"qa_outputs\..*"),
        ),
        aliases={
            "hidden_size": "d_model",
            "num_attention_heads": "num_heads",
            "num_hidden_layers": "num_layers",
            "head_dim": "d_kv",
        },
        remarks=table_remarks,
        layer_counts=("num_decoder_layers",),
    )
    return family


T5 = _family("t5", "T5", "T5", keys=T5Keys)
MT5 = _family("mt5", "mT5", "MT5", scales=False)
UMT5 = _family("umt5", "UMT5", "UMT5", own_tables=True)
