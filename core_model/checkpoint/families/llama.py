"""Llama, 1 to 3 (Touvron et al. 2023): rotary positions, RMS norms, a gated feed-forward, grouped queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
from core_model.checkpoint.families.rotary import RopeKeys, read_rotary, write_rotary
from core_model.config import (
    AttentionSpec,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
)
from core_model.errors import ConfigError

_ARCHITECTURES = {
    "LlamaModel": None,
    "LlamaForCausalLM": "language_model",
    "LlamaForSequenceClassification": "sequence_classes",
    "LlamaForTokenClassification": "token_classes",
}


@dataclass(frozen=True, kw_only=True)
class LlamaKeys:
    """The keys of config.json that decide what is computed."""

    vocab_size: Count
    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    hidden_act: str = "silu"
    rms_norm_eps: Positive = 1e-6
    max_position_embeddings: Count = 2048
    rope_theta: Positive | None = None
    rope_scaling: RopeKeys | None = None
    rope_parameters: RopeKeys | None = None
    attention_bias: bool = False
    attention_dropout: Rate | None = 0.0
    mlp_bias: bool = False
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = None


def _read(keys: LlamaKeys, weights: Weights) -> ModelConfig:
    n_heads = keys.num_attention_heads
    if keys.head_dim is None and keys.hidden_size % n_heads:
        raise ConfigError(
            f"num_attention_heads is {n_heads} and hidden_size is {keys.hidden_size} in config.json: "
            "without head_dim, the second must be divisible by the first"
        )
    head_size = keys.head_dim or keys.hidden_size // n_heads
    norm = NormSpec(kind="rms", eps=keys.rms_norm_eps, bias=False)
    layer = LayerSpec(
        attention=AttentionSpec(
            n_heads=n_heads,
            n_key_heads=keys.num_key_value_heads or n_heads,
            head_size=head_size,
            scale=head_size**-0.5,
            mask=MaskSpec(causal=True),
            position=read_rotary(
                keys.rope_parameters or keys.rope_scaling,
                head_size=head_size,
                theta=keys.rope_theta,
                max_length=keys.max_position_embeddings,
            ),
            query_bias=keys.attention_bias,
            key_bias=keys.attention_bias,
            value_bias=keys.attention_bias,
            output_bias=keys.attention_bias,
            dropout=keys.attention_dropout or 0.0,
        ),
        attention_residual=ResidualSpec(before=norm),
        feed_forward=FeedForwardSpec(
            d_hidden=keys.intermediate_size,
            activation=activation("hidden_act", keys.hidden_act),
            gated=True,
            bias=keys.mlp_bias,
        ),
        feed_forward_residual=ResidualSpec(before=norm),
    )
    decoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.hidden_size),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=norm,
    )
    return ModelConfig(
        decoder=decoder,
        head=_read_head(keys, weights),
        special=special_tokens(begin=keys.bos_token_id, end=keys.eos_token_id, padding=keys.pad_token_id),
    )


def _read_head(keys: LlamaKeys, weights: Weights) -> HeadSpec | None:
    task = weights.task(FAMILY, {"language_model": "lm_head.weight", "sequence_classes": "score.weight"})
    if task is None:
        return None
    if task == "language_model":
        tied = weights.ties(
            "lm_head.weight", "embed_tokens.weight", stated=keys.tie_word_embeddings, default=FAMILY.tied_by_default
        )
        return HeadSpec(n_outputs=keys.vocab_size, task="language_model", tied=tied)
    n_labels, labels = classes(keys.id2label, weights.size("score.weight", 0))
    if task == "token_classes":
        return HeadSpec(n_outputs=n_labels, task="token_classes", bias=True, labels=labels)
    return HeadSpec(n_outputs=n_labels, task="sequence_classes", pooling="last", labels=labels)


def _write(config: ModelConfig) -> Foreign:
    stack, head = config.output_stack, config.head
    layer = stack.layers[0]
    attention, position = layer.attention, layer.attention.position
    rope = write_rotary(position) if isinstance(position, RotaryPositions) else RopeKeys()
    keys = LlamaKeys(
        vocab_size=stack.embedding.vocab_size,
        hidden_size=stack.d_model,
        intermediate_size=layer.feed_forward.d_hidden,
        num_hidden_layers=stack.n_layers,
        num_attention_heads=attention.n_heads,
        num_key_value_heads=attention.n_key_heads,
        head_dim=attention.head_size,
        hidden_act=activation_name(layer.feed_forward.activation),
        rms_norm_eps=stack.final_norm.eps if stack.final_norm else 1e-6,
        max_position_embeddings=rope.original_max_position_embeddings or 2048,  # rotary positions have no last one
        rope_parameters=rope,
        attention_bias=attention.query_bias,
        attention_dropout=attention.dropout,
        mlp_bias=layer.feed_forward.bias,
        tie_word_embeddings=bool(head and head.tied),
        id2label=class_names(head),
        bos_token_id=config.special.begin,
        eos_token_id=config.special.end,
        pad_token_id=config.special.padding,
    )
    task = head.task if head else None
    return Foreign(keys=keys, architecture=FAMILY.architecture_for(task))


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    head = config.head
    theirs, ours = "layers.{i}", "decoder.layers.{i}"
    return (
        row(
            "embed_tokens.weight",
            "decoder.embedding.token.weight",
            also=("lm_head.weight",) if head and head.tied else (),
        ),
        row(f"{theirs}.input_layernorm.weight", f"{ours}.attention_residual.before.weight"),
        row(f"{theirs}.self_attn.q_proj.*", f"{ours}.attention.query.*"),
        row(f"{theirs}.self_attn.k_proj.*", f"{ours}.attention.key.*"),
        row(f"{theirs}.self_attn.v_proj.*", f"{ours}.attention.value.*"),
        row(f"{theirs}.self_attn.o_proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.post_attention_layernorm.weight", f"{ours}.feed_forward_residual.before.weight"),
        row(f"{theirs}.mlp.gate_proj.*", f"{ours}.feed_forward.gate.*"),
        row(f"{theirs}.mlp.up_proj.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.down_proj.*", f"{ours}.feed_forward.output.*"),
        row("norm.weight", "decoder.final_norm.weight"),
        row("lm_head.*" if head and head.task == "language_model" else "score.*", "head.output.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("embed_tokens.weight", 0),
        "hidden_size": weights.size("embed_tokens.weight", 1),
        "intermediate_size": weights.size("layers.0.mlp.up_proj.weight", 0),
        "num_hidden_layers": weights.n_layers("layers.{i}.self_attn.q_proj.weight") or None,
    }


FAMILY = Family(
    key="llama",
    label="Llama",
    model_types=("llama",),
    architectures=_ARCHITECTURES,
    keys=LlamaKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "n_key_heads": "num_key_value_heads",
        "head_size": "head_dim",
        "d_model": "hidden_size",
        "d_hidden": "intermediate_size",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "hidden_act",
        "eps": "rms_norm_eps",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("model.",),
        roots=("lm_head.", "score."),
        buffers=(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"rotary_emb\.inv_freq"),
    ),
    tied_by_default=False,
)
