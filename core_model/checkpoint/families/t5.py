"""T5 and its relatives (Raffel et al. 2020): distances as score biases, scores without a scale, no biases.

Flan-T5 and T5 1.1 are gated, with a head of their own; mT5 never scales its logits; UMT5 has a table of distances in
every layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    Positive,
    Rate,
    TokenId,
    activation,
    activation_name,
    class_names,
    classes,
    special_tokens,
)
from core_model.config import (
    AttentionSpec,
    BucketedPositions,
    FeedForwardSpec,
    HeadSpec,
    HeadTransform,
    LayerSpec,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
)
from core_model.errors import ConfigError

_TABLE, _HEAD, _GATED = "shared.weight", "lm_head.weight", "gated-"
_PARTS = (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output"))


@dataclass(frozen=True, kw_only=True)
class T5Keys:
    """The keys of config.json that decide what is computed.

    transformers 4 scales the logits where the head is tied, 5 where scale_decoder_outputs says so.
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
    layer_norm_epsilon: Positive = 1e-6
    dropout_rate: Rate = 0.1
    scale_decoder_outputs: bool | None = None
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    bos_token_id: TokenId = None
    eos_token_id: TokenId = 1
    pad_token_id: TokenId = 0
    decoder_start_token_id: TokenId = None

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
    embedding = TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.d_model, dropout=keys.dropout_rate)
    shape = StackConfig(
        d_model=keys.d_model,
        embedding=embedding,
        layers=_layers(keys, keys.num_layers, is_decoder=False, own_tables=own_tables),
        final_norm=keys.norm,
    )
    has_decoder = _has_decoder(family, weights)
    n_decoder_layers = keys.num_decoder_layers or keys.num_layers
    start = keys.pad_token_id if keys.decoder_start_token_id is None else keys.decoder_start_token_id
    return ModelConfig(
        encoder=shape,
        decoder=replace(shape, layers=_layers(keys, n_decoder_layers, is_decoder=True, own_tables=own_tables))
        if has_decoder
        else None,
        shared_embedding=has_decoder,
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


def _layers(keys: T5Keys, n_layers: int, *, is_decoder: bool, own_tables: bool) -> tuple[LayerSpec, ...]:
    buckets = BucketedPositions(
        n_buckets=keys.relative_attention_num_buckets,
        max_distance=keys.relative_attention_max_distance,
        bidirectional=not is_decoder,
    )
    mask = MaskSpec(causal=is_decoder)
    first = _layer(keys, _attention(keys, mask, buckets), is_decoder=is_decoder)
    later = buckets if own_tables else replace(buckets, from_layer=0)
    other = _layer(keys, _attention(keys, mask, later), is_decoder=is_decoder)
    return (first, *(other,) * (n_layers - 1))


def _layer(keys: T5Keys, attention: AttentionSpec, *, is_decoder: bool) -> LayerSpec:
    residual = ResidualSpec(before=keys.norm, dropout=keys.dropout_rate)
    return LayerSpec(
        attention=attention,
        attention_residual=residual,
        cross_attention=_attention(keys, MaskSpec(), None) if is_decoder else None,
        cross_residual=residual if is_decoder else ResidualSpec(),
        feed_forward=_read_feed_forward(keys),
        feed_forward_residual=residual,
    )


def _attention(keys: T5Keys, mask: MaskSpec, position: BucketedPositions | None) -> AttentionSpec:
    return AttentionSpec(
        n_heads=keys.num_heads,
        n_key_heads=keys.num_heads,
        head_size=keys.d_kv,
        scale=1.0,
        mask=mask,
        position=position,
        query_bias=False,
        key_bias=False,
        value_bias=False,
        output_bias=False,
        dropout=keys.dropout_rate,
    )


def _read_feed_forward(keys: T5Keys) -> FeedForwardSpec:
    """`gated-gelu` means the tanh approximation, other names what they say."""
    gated = keys.feed_forward_proj.startswith(_GATED)
    name = keys.feed_forward_proj.removeprefix(_GATED)
    if gated and name == "gelu":
        name = "gelu_new"
    return FeedForwardSpec(
        d_hidden=keys.d_ff,
        activation=activation("feed_forward_proj", name),
        gated=gated,
        bias=False,
        dropout=keys.dropout_rate,
    )


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
    if task is None:
        return None
    if task == "language_model":
        tied = weights.ties(_HEAD, _TABLE, stated=keys.tie_word_embeddings, default=True)
        says_scaled = keys.scale_decoder_outputs
        is_scaled = scales and (keys.tie_word_embeddings is not False if says_scaled is None else says_scaled)
        scale = keys.d_model**-0.5 if is_scaled else 1.0
        return HeadSpec(n_outputs=keys.vocab_size, task="language_model", tied=tied, scale=scale)
    if task == "answer_span":
        return HeadSpec(n_outputs=2, task="answer_span", bias=True)
    if task == "token_classes":
        n_labels, labels = classes(keys.id2label, weights.size("classifier.weight", 0))
        return HeadSpec(n_outputs=n_labels, task="token_classes", bias=True, labels=labels)
    n_labels, labels = classes(keys.id2label, weights.size("classification_head.out_proj.weight", 0))
    return HeadSpec(
        n_outputs=n_labels,
        task="sequence_classes",
        pooling="last",
        bias=True,
        transform=HeadTransform(d_output=keys.d_model, activation="tanh"),
        labels=labels,
    )


def _write(family: Family, config: ModelConfig) -> Foreign:
    encoder, decoder, head = config.encoder, config.decoder, config.head
    if encoder is None:
        raise ConfigError("config.encoder is None: there it is always an encoder, with or without a decoder")
    layer, position = encoder.layers[0], encoder.layers[0].attention.position
    buckets = position if isinstance(position, BucketedPositions) else BucketedPositions()
    is_language_model = head is not None and head.task == "language_model"
    keys = family.keys(
        vocab_size=encoder.tokens.vocab_size,
        d_model=encoder.d_model,
        num_layers=encoder.n_layers,
        num_heads=layer.attention.n_heads,
        d_ff=layer.feed_forward.d_hidden,
        d_kv=layer.attention.head_size,
        num_decoder_layers=decoder.n_layers if decoder else None,
        relative_attention_num_buckets=buckets.n_buckets,
        relative_attention_max_distance=buckets.max_distance,
        feed_forward_proj=_write_feed_forward(layer.feed_forward),
        layer_norm_epsilon=encoder.final_norm.eps if encoder.final_norm else 1e-6,
        dropout_rate=layer.attention.dropout,
        scale_decoder_outputs=head.scale != 1 if head is not None and is_language_model else None,
        tie_word_embeddings=head.tied if head is not None and is_language_model else None,
        id2label=class_names(head),
        bos_token_id=config.special.begin,
        eos_token_id=config.special.end,
        pad_token_id=config.special.padding,
        decoder_start_token_id=config.special.decoder_start,
    )
    task = head.task if head else None
    if decoder is None and task is None:
        bare = next(name for name in family.architectures if name.endswith("EncoderModel"))
        return Foreign(keys=keys, architecture=bare)
    return Foreign(keys=keys, architecture=family.architecture_for(task))


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    tied = config.head is not None and config.head.tied
    return (
        row(
            _TABLE,
            "encoder.embedding.token.weight",
            also=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", *((_HEAD,) if tied else ())),
        ),
        *(line for name, stack in config.stacks.items() for line in _stack_rows(name, stack)),
        *_head_rows(config.head),
    )


def _stack_rows(name: str, stack: StackConfig) -> tuple[Row, ...]:
    theirs, ours = f"{name}.block.{{i}}.layer", f"{name}.layers.{{i}}"
    self_attention, cross_attention = f"{theirs}.0.SelfAttention", f"{theirs}.1.EncDecAttention"
    last = 1 if name == "encoder" else 2
    inputs = (("wi_0", "gate"), ("wi_1", "input")) if stack.layers[0].feed_forward.gated else (("wi", "input"),)
    return (
        row(f"{theirs}.0.layer_norm.weight", f"{ours}.attention_residual.before.weight"),
        *(row(f"{self_attention}.{part}.weight", f"{ours}.attention.{our}.weight") for part, our in _PARTS),
        row(f"{self_attention}.relative_attention_bias.weight", f"{ours}.attention.position_bias.weight"),
        row(f"{theirs}.1.layer_norm.weight", f"{ours}.cross_residual.before.weight"),
        *(row(f"{cross_attention}.{part}.weight", f"{ours}.cross_attention.{our}.weight") for part, our in _PARTS),
        row(f"{theirs}.{last}.layer_norm.weight", f"{ours}.feed_forward_residual.before.weight"),
        *(
            row(f"{theirs}.{last}.DenseReluDense.{wi}.weight", f"{ours}.feed_forward.{our}.weight")
            for wi, our in inputs
        ),
        row(f"{theirs}.{last}.DenseReluDense.wo.weight", f"{ours}.feed_forward.output.weight"),
        row(f"{name}.final_layer_norm.weight", f"{name}.final_norm.weight"),
    )


def _head_rows(head: HeadSpec | None) -> tuple[Row, ...]:
    if head is None:
        return ()
    if head.task == "sequence_classes":
        return (
            row("classification_head.dense.*", "head.transform.*"),
            row("classification_head.out_proj.*", "head.output.*"),
        )
    names = {"language_model": "lm_head", "token_classes": "classifier", "answer_span": "qa_outputs"}
    return (row(f"{names[head.task]}.*", "head.output.*"),)


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size(_TABLE, 0),
        "d_model": weights.size(_TABLE, 1),
        "num_layers": weights.n_layers("encoder.block.{i}.layer.0.layer_norm.weight") or None,
        "num_decoder_layers": weights.n_layers("decoder.block.{i}.layer.0.layer_norm.weight") or None,
        "d_ff": weights.size("encoder.block.0.layer.1.DenseReluDense.wo.weight", 1),
    }


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
        sizes=_sizes,
        places={
            "n_layers": "num_layers",
            "n_heads": "num_heads",
            "head_size": "d_kv",
            "d_model": "d_model",
            "d_hidden": "d_ff",
            "vocab_size": "vocab_size",
            "activation": "feed_forward_proj",
            "eps": "layer_norm_epsilon",
        },
        names=NameTable(
            rows=_rows,
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
        layer_counts=("num_decoder_layers",),
    )
    return family


T5 = _family("t5", "T5", "T5", keys=T5Keys)
MT5 = _family("mt5", "mT5", "MT5", scales=False)
UMT5 = _family("umt5", "UMT5", "UMT5", own_tables=True)
