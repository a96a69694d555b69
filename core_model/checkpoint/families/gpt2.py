"""GPT-2 (Radford et al. 2019), as transformers stores it: [in, out] matrices, queries, keys and values fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.conversion import TRANSPOSED
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
    FeedForwardSpec,
    HeadSpec,
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

_ARCHITECTURES = {
    "GPT2Model": None,
    "GPT2LMHeadModel": "language_model",
    "GPT2DoubleHeadsModel": "language_model",
    "GPT2ForSequenceClassification": "sequence_classes",
    "GPT2ForTokenClassification": "token_classes",
    "GPT2ForQuestionAnswering": "answer_span",
}
_HEADS = {"sequence_classes": "score", "token_classes": "classifier", "answer_span": "qa_outputs"}


@dataclass(frozen=True, kw_only=True)
class Gpt2Keys:
    """The keys of config.json that decide what is computed."""

    vocab_size: Count
    n_positions: Count
    n_embd: Count
    n_layer: Count
    n_head: Count
    n_inner: Count | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: Positive = 1e-5
    embd_pdrop: Rate = 0.1
    attn_pdrop: Rate = 0.1
    resid_pdrop: Rate = 0.1
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = None


def _read(keys: Gpt2Keys, weights: Weights) -> ModelConfig:
    if keys.add_cross_attention:
        raise ConfigError("add_cross_attention is true in config.json: a GPT-2 that reads an encoder is not supported")
    if keys.n_embd % keys.n_head:
        raise ConfigError(
            f"n_head is {keys.n_head} and n_embd is {keys.n_embd} in config.json: every head must have the same size"
        )
    norm = NormSpec(eps=keys.layer_norm_epsilon)
    residual = ResidualSpec(before=norm, dropout=keys.resid_pdrop)
    head_size = keys.n_embd // keys.n_head
    scale = head_size**-0.5 if keys.scale_attn_weights else 1.0
    layers = tuple(
        LayerSpec(
            attention=multi_head(
                keys.n_embd,
                keys.n_head,
                mask=MaskSpec(causal=True),
                scale=scale / (i + 1) if keys.scale_attn_by_inverse_layer_idx else scale,
                dropout=keys.attn_pdrop,
            ),
            attention_residual=residual,
            feed_forward=FeedForwardSpec(
                d_hidden=keys.n_inner or 4 * keys.n_embd,
                activation=activation("activation_function", keys.activation_function),
            ),
            feed_forward_residual=residual,
        )
        for i in range(keys.n_layer)
    )
    decoder = StackConfig(
        d_model=keys.n_embd,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.n_embd, dropout=keys.embd_pdrop),
        position=LearnedPositions(max_length=keys.n_positions),
        layers=layers,
        final_norm=norm,
    )
    return ModelConfig(
        decoder=decoder,
        head=_read_head(keys, weights),
        special=special_tokens(begin=keys.bos_token_id, end=keys.eos_token_id, padding=keys.pad_token_id),
    )


def _read_head(keys: Gpt2Keys, weights: Weights) -> HeadSpec | None:
    evidence = {
        "sequence_classes": "score.weight",
        "token_classes": "classifier.weight",
        "answer_span": "qa_outputs.weight",
    }
    task = weights.task(FAMILY, evidence, default="language_model")
    if task is None:
        return None
    if task == "language_model":
        tied = weights.ties(
            "lm_head.weight", "wte.weight", stated=keys.tie_word_embeddings, default=FAMILY.tied_by_default
        )
        return HeadSpec(n_outputs=keys.vocab_size, task="language_model", tied=tied)
    if task == "answer_span":
        return HeadSpec(n_outputs=2, task="answer_span", bias=True)
    n_labels, labels = classes(keys.id2label, weights.size(f"{_HEADS[task]}.weight", 0))
    if task == "token_classes":
        return HeadSpec(n_outputs=n_labels, task="token_classes", bias=True, labels=labels)
    return HeadSpec(n_outputs=n_labels, task="sequence_classes", pooling="last", labels=labels)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer, position, head = stack.layers[0], stack.position, config.head
    plain_scale = layer.attention.head_size**-0.5
    keys = Gpt2Keys(
        vocab_size=stack.embedding.vocab_size,
        n_positions=position.max_length if isinstance(position, LearnedPositions) else 1,
        n_embd=stack.d_model,
        n_layer=stack.n_layers,
        n_head=layer.attention.n_heads,
        n_inner=layer.feed_forward.d_hidden,
        activation_function=activation_name(layer.feed_forward.activation),
        layer_norm_epsilon=stack.final_norm.eps if stack.final_norm else 1e-5,
        embd_pdrop=stack.embedding.dropout,
        attn_pdrop=layer.attention.dropout,
        resid_pdrop=layer.attention_residual.dropout,
        scale_attn_weights=layer.attention.scale == plain_scale,
        scale_attn_by_inverse_layer_idx=stack.layers[-1].attention.scale != layer.attention.scale,
        tie_word_embeddings=head.tied if head else True,
        id2label=class_names(head),
        bos_token_id=config.special.begin,
        eos_token_id=config.special.end,
        pad_token_id=config.special.padding,
    )
    return Foreign(keys=keys, architecture=FAMILY.architecture_for(head.task if head else None))


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    head = config.head
    root = _HEADS.get(head.task, "lm_head") if head else "lm_head"
    layer = "decoder.layers.{i}"
    return (
        row("wte.weight", "decoder.embedding.token.weight", also=("lm_head.weight",) if head and head.tied else ()),
        row("wpe.weight", "decoder.position.weight"),
        row("h.{i}.ln_1.*", f"{layer}.attention_residual.before.*"),
        row(
            "h.{i}.attn.c_attn.*",
            *(f"{layer}.attention.{part}.*" for part in ("query", "key", "value")),
            conversion=TRANSPOSED,
        ),
        row("h.{i}.attn.c_proj.*", f"{layer}.attention.output.*", conversion=TRANSPOSED),
        row("h.{i}.ln_2.*", f"{layer}.feed_forward_residual.before.*"),
        row("h.{i}.mlp.c_fc.*", f"{layer}.feed_forward.input.*", conversion=TRANSPOSED),
        row("h.{i}.mlp.c_proj.*", f"{layer}.feed_forward.output.*", conversion=TRANSPOSED),
        row("ln_f.*", "decoder.final_norm.*"),
        row(f"{root}.*", "head.output.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("wte.weight", 0),
        "n_embd": weights.size("wte.weight", 1),
        "n_positions": weights.size("wpe.weight", 0),
        "n_layer": weights.n_layers("h.{i}.ln_1.weight") or None,
        "n_inner": weights.size("h.0.mlp.c_fc.weight", 1),
    }


FAMILY = Family(
    key="gpt2",
    label="GPT-2",
    model_types=("gpt2",),
    architectures=_ARCHITECTURES,
    keys=Gpt2Keys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "n_layer",
        "n_heads": "n_head",
        "d_model": "n_embd",
        "d_hidden": "n_inner",
        "vocab_size": "vocab_size",
        "max_length": "n_positions",
        "activation": "activation_function",
        "eps": "layer_norm_epsilon",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=("lm_head.", "score.", "classifier.", "qa_outputs.", "multiple_choice_head."),
        buffers=(r"h\.\d+\.attn\.(masked_)?bias",),
        unused=(r"multiple_choice_head\..*",),
    ),
    markers=(r"(transformer\.)?wpe\.weight", r"(transformer\.)?h\.0\.attn\.c_attn\.weight"),
)
