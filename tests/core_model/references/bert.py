"""BERT: post-norm, token types, a head with a transform."""

from __future__ import annotations

from transformers import BertConfig, BertForMaskedLM

from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    HeadTransform,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from tests.core_model.references.family import FF, HEADS, LAYERS, LENGTH, VOCAB, D, Family, Weights, eager, renamed


def bert_weights(theirs: Weights) -> Weights:
    return renamed(
        theirs,
        {
            "bert.embeddings.word_embeddings": "encoder.embedding.token",
            "bert.embeddings.token_type_embeddings": "encoder.embedding.token_type",
            "bert.embeddings.position_embeddings": "encoder.position",
            "bert.embeddings.LayerNorm": "encoder.embedding.norm",
            "bert.encoder.layer.{i}.attention.self.query": "encoder.layers.{i}.attention.query",
            "bert.encoder.layer.{i}.attention.self.key": "encoder.layers.{i}.attention.key",
            "bert.encoder.layer.{i}.attention.self.value": "encoder.layers.{i}.attention.value",
            "bert.encoder.layer.{i}.attention.output.dense": "encoder.layers.{i}.attention.output",
            "bert.encoder.layer.{i}.attention.output.LayerNorm": "encoder.layers.{i}.attention_residual.total",
            "bert.encoder.layer.{i}.intermediate.dense": "encoder.layers.{i}.feed_forward.input",
            "bert.encoder.layer.{i}.output.dense": "encoder.layers.{i}.feed_forward.output",
            "bert.encoder.layer.{i}.output.LayerNorm": "encoder.layers.{i}.feed_forward_residual.total",
            "cls.predictions.transform.dense": "head.transform",
            "cls.predictions.transform.LayerNorm": "head.transform_norm",
        },
    ) | {"head.output.bias": theirs["cls.predictions.bias"]}


BERT_NORM = NormSpec(eps=1e-12)
BERT = Family(
    theirs=eager(
        BertForMaskedLM,
        BertConfig(
            vocab_size=VOCAB,
            hidden_size=D,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=FF,
            max_position_embeddings=LENGTH,
        ),
    ),
    config=ModelConfig(
        encoder=StackConfig(
            d_model=D,
            embedding=TokenEmbedding(vocab_size=VOCAB, d_embedding=D, n_types=2, norm=BERT_NORM),
            position=LearnedPositions(max_length=LENGTH),
            layers=(
                LayerSpec(
                    attention=multi_head(D, HEADS),
                    attention_residual=ResidualSpec(total=BERT_NORM),
                    feed_forward=FeedForwardSpec(d_hidden=FF, activation="gelu"),
                    feed_forward_residual=ResidualSpec(total=BERT_NORM),
                ),
            )
            * LAYERS,
        ),
        head=HeadSpec(
            n_outputs=VOCAB,
            task="masked_language_model",
            tied=True,
            bias=True,
            transform=HeadTransform(d_output=D, activation="gelu", norm=BERT_NORM),
        ),
    ),
    copied=bert_weights,
)
