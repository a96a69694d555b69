"""What BART and its relatives share: an encoder and a decoder under fairseq's names.

They differ in where the norms stand and in their positions; see `Anatomy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.conversion import WRAPPED
from core_model.checkpoint.families.decoders import layer_rows
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    Rate,
    TokenId,
    activation,
    activation_name,
    class_names,
    classes,
    equal_heads,
    special_tokens,
)
from core_model.config import (
    AbsolutePositions,
    AttentionSpec,
    FeedForwardSpec,
    HeadSpec,
    HeadTransform,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

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
_TABLES = {stack: f"{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")}
_SHARED, _LOGITS_BIAS = "shared.weight", "final_logits_bias"
_NORM = NormSpec()


@dataclass(frozen=True, kw_only=True)
class Seq2SeqKeys:
    """The keys of config.json that decide what is computed."""

    vocab_size: Count
    d_model: Count
    encoder_layers: Count
    encoder_attention_heads: Count
    encoder_ffn_dim: Count
    decoder_layers: Count
    decoder_attention_heads: Count
    decoder_ffn_dim: Count
    decoder_vocab_size: Count | None = None
    max_position_embeddings: Count = 1024
    activation_function: str = "gelu"
    scale_embedding: bool = False
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = None
    decoder_start_token_id: TokenId = None


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """What distinguishes a family: norms before the sublayers (and after the last layer) or after the sums, a norm of
    the embeddings, how positions come in, and whether logits get a bias of their own.
    """

    pre_norm: bool
    embedding_norm: bool
    positions: Callable[[Any], AbsolutePositions]
    logits_bias: bool = True

    def read(self, family: Family, keys: Seq2SeqKeys, weights: Weights, *, shared: bool | None = None) -> ModelConfig:
        """The model these keys describe; whether its stacks share one token table is told by the file unless given."""
        if not keys.is_encoder_decoder:
            raise ConfigError(
                f"is_encoder_decoder is false in config.json: half a {family.label}, without its encoder or its "
                "decoder, is not supported"
            )
        if shared is None:
            shared = not (
                all(name in weights for name in _TABLES.values())
                and weights.differ(*(weights.stored[name] for name in _TABLES.values()))
            )
        decoder_vocab = keys.decoder_vocab_size or keys.vocab_size
        return ModelConfig(
            encoder=self._stack(keys, "encoder", keys.vocab_size),
            decoder=self._stack(keys, "decoder", keys.vocab_size if shared else decoder_vocab),
            shared_embedding=shared,
            head=self._head(family, keys, weights, _SHARED if shared else _TABLES["decoder"], decoder_vocab),
            special=special_tokens(
                begin=keys.bos_token_id,
                end=keys.eos_token_id,
                padding=keys.pad_token_id,
                decoder_start=keys.decoder_start_token_id,
            ),
        )

    def _stack(self, keys: Seq2SeqKeys, name: str, vocab_size: int) -> StackConfig:
        n_layers, d_hidden = getattr(keys, f"{name}_layers"), getattr(keys, f"{name}_ffn_dim")
        is_decoder = name == "decoder"
        residual = ResidualSpec(
            before=_NORM if self.pre_norm else None, total=None if self.pre_norm else _NORM, dropout=keys.dropout
        )
        layer = LayerSpec(
            attention=_attention(keys, name, MaskSpec(causal=is_decoder)),
            attention_residual=residual,
            cross_attention=_attention(keys, name, MaskSpec()) if is_decoder else None,
            cross_residual=residual if is_decoder else ResidualSpec(),
            feed_forward=FeedForwardSpec(
                d_hidden=d_hidden,
                activation=activation("activation_function", keys.activation_function),
                dropout=keys.activation_dropout,
            ),
            feed_forward_residual=residual,
        )
        return StackConfig(
            d_model=keys.d_model,
            embedding=TokenEmbedding(
                vocab_size=vocab_size,
                d_embedding=keys.d_model,
                scale=keys.d_model**0.5 if keys.scale_embedding else 1.0,
                norm=_NORM if self.embedding_norm else None,
                dropout=keys.dropout,
            ),
            position=self.positions(keys),
            layers=(layer,) * n_layers,
            final_norm=_NORM if self.pre_norm else None,
        )

    def _head(
        self, family: Family, keys: Seq2SeqKeys, weights: Weights, table: str, vocab_size: int
    ) -> HeadSpec | None:
        evidence = {"sequence_classes": "classification_head.dense.weight", "answer_span": "qa_outputs.weight"}
        has_logits = _LOGITS_BIAS in weights or "lm_head.weight" in weights
        task = weights.task(family, evidence, "language_model" if has_logits else None)
        if task is None:
            return None
        if task == "language_model":
            tied = weights.ties("lm_head.weight", table, stated=keys.tie_word_embeddings, default=True)
            bias = self.logits_bias and _LOGITS_BIAS in weights
            return HeadSpec(n_outputs=vocab_size, task="language_model", tied=tied, bias=bias)
        if task == "answer_span":
            return HeadSpec(n_outputs=2, task="answer_span", bias=True)
        n_labels, labels = classes(keys.id2label, weights.size("classification_head.out_proj.weight", 0))
        return HeadSpec(
            n_outputs=n_labels,
            task="sequence_classes",
            pooling="last",
            bias=True,
            transform=HeadTransform(d_output=keys.d_model, activation="tanh"),
            labels=labels,
        )


def _attention(keys: Seq2SeqKeys, stack: str, mask: MaskSpec) -> AttentionSpec:
    heads = f"{stack}_attention_heads"
    equal_heads(keys, "d_model", heads)
    return multi_head(keys.d_model, getattr(keys, heads), mask=mask, dropout=keys.attention_dropout)


def learned_positions(keys: Seq2SeqKeys) -> LearnedPositions:
    """fairseq's: the first token stands in row 2."""
    return LearnedPositions(max_length=keys.max_position_embeddings, offset=2)


def common_keys(config: ModelConfig) -> dict[str, Any]:
    """The `Seq2SeqKeys` of a config, by name."""
    encoder, decoder, head = config.encoder, config.decoder, config.head
    if encoder is None or decoder is None:
        raise ConfigError("config has one stack: there it is always an encoder and a decoder")
    layer = encoder.layers[0]
    told: dict[str, Any] = {
        "vocab_size": encoder.tokens.vocab_size,
        "d_model": encoder.d_model,
        "max_position_embeddings": encoder.max_length or 1024,
        "activation_function": activation_name(layer.feed_forward.activation),
        "scale_embedding": encoder.tokens.scale != 1,
        "dropout": layer.attention_residual.dropout,
        "attention_dropout": layer.attention.dropout,
        "activation_dropout": layer.feed_forward.dropout,
        "tie_word_embeddings": head.tied if head is not None and head.task == "language_model" else None,
        "id2label": class_names(head),
        "bos_token_id": config.special.begin,
        "eos_token_id": config.special.end,
        "pad_token_id": config.special.padding,
        "decoder_start_token_id": config.special.decoder_start,
    }
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        told[f"{name}_layers"] = stack.n_layers
        told[f"{name}_attention_heads"] = stack.layers[0].attention.n_heads
        told[f"{name}_ffn_dim"] = stack.layers[0].feed_forward.d_hidden
    return told


def foreign(family: Family, keys: Seq2SeqKeys, config: ModelConfig) -> Foreign:
    """The keys with the class of transformers that has the config's head."""
    head = config.head
    has_bias = head is not None and head.task == "language_model" and head.bias
    return Foreign(
        keys=keys,
        architecture=family.architecture_for(head.task if head else None),
        stored={_LOGITS_BIAS: (1, head.n_outputs)} if head is not None and has_bias else {},
    )


def rows(anatomy: Anatomy) -> Callable[[ModelConfig], tuple[Row, ...]]:
    """The name table of a family."""
    norm = "before" if anatomy.pre_norm else "total"

    def lines(config: ModelConfig) -> tuple[Row, ...]:
        return (
            *_table_rows(config),
            *stack_rows("encoder", norm),
            *stack_rows("decoder", norm),
            *_head_rows(config.head),
        )

    return lines


def _table_rows(config: ModelConfig) -> tuple[Row, ...]:
    head = ("lm_head.weight",) if config.head is not None and config.head.tied else ()
    if config.shared_embedding:
        return (row(_SHARED, "encoder.embedding.token.weight", also=(*_TABLES.values(), *head)),)
    return (
        row(_TABLES["encoder"], "encoder.embedding.token.weight"),
        row(_TABLES["decoder"], "decoder.embedding.token.weight", also=head),
    )


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
    """fairseq's names of a stack, whose norms are `before` the sublayers or of the `total`."""
    layer = f"{stack}.layers.{{i}}"
    return (
        row(f"{stack}.embed_positions.weight", f"{stack}.position.weight"),
        row(f"{stack}.layernorm_embedding.*", f"{stack}.embedding.norm.*"),
        *layer_rows(layer, layer_names(norm), ours=layer),
        row(f"{stack}.layer_norm.*", f"{stack}.final_norm.*"),
    )


def _head_rows(head: HeadSpec | None) -> tuple[Row, ...]:
    if head is None:
        return ()
    if head.task == "language_model":
        return (
            row("lm_head.weight", "head.output.weight"),
            row(_LOGITS_BIAS, "head.output.bias", conversion=WRAPPED),
        )
    if head.task == "answer_span":
        return (row("qa_outputs.*", "head.output.*"),)
    return (
        row("classification_head.dense.*", "head.transform.*"),
        row("classification_head.out_proj.*", "head.output.*"),
    )


def sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes of a file tell."""
    table = next((name for name in (_SHARED, *_TABLES.values()) if name in weights), _SHARED)
    told: dict[str, object] = {"vocab_size": weights.size(table, 0), "d_model": weights.size(table, 1)}
    for stack in ("encoder", "decoder"):
        told[f"{stack}_layers"] = weights.n_layers(f"{stack}.layers.{{i}}.fc1.weight") or None
        told[f"{stack}_ffn_dim"] = weights.size(f"{stack}.layers.0.fc1.weight", 0)
    return told


def name_table(anatomy: Anatomy, *, fixed_positions: bool = False) -> NameTable:
    """The names of a family; `fixed_positions` where a table of sines and cosines may be stored, which is no weight."""
    fixed = (r"(encoder|decoder)\.embed_positions\.weights?",) if fixed_positions else ()
    return NameTable(
        rows=rows(anatomy),
        prefixes=("model.",),
        roots=("lm_head.", _LOGITS_BIAS, "classification_head.", "qa_outputs."),
        buffers=(*fixed, r"(encoder|decoder)\.version", r"(encoder|decoder)\.embed_positions\._float_tensor"),
        unused=(r"lm_head\..*", _LOGITS_BIAS, r"classification_head\..*", r"qa_outputs\..*", r"shared\.weight"),
    )


def architectures(name: str, conditional: str = "ForConditionalGeneration") -> Mapping[str, str | None]:
    """transformers' classes of a family: the bare model and the one that generates."""
    return {f"{name}Model": None, f"{name}{conditional}": "language_model"}
