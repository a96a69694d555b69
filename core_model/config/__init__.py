"""What a transformer is made of, as inert frozen records.

A `ModelConfig` holds one or two `StackConfig` (encoder and decoder, or towers of text and vision); a stack holds its
embedding, its absolute positions and one `LayerSpec` a layer, so any per-layer pattern is simply different records in
the tuple. Records check themselves when made and raise `ConfigError` naming the field, the value and the limit. Nothing
here knows torch, files, devices or seeds.
"""

from core_model.config.attention import AttentionSpec, MaskSpec, multi_head
from core_model.config.embeddings import (
    AudioEmbedding,
    EmbeddingSpec,
    PatchEmbedding,
    TokenEmbedding,
    VectorEmbedding,
    ZeroedTokens,
)
from core_model.config.heads import HeadSpec, HeadTransform, Pooling
from core_model.config.layers import Activation, ExpertsSpec, FeedForwardSpec, LayerSpec, ResidualSpec
from core_model.config.model import ModelConfig, SpecialTokens
from core_model.config.norms import NormSpec, QueryKeyNorm
from core_model.config.positions import (
    AbsolutePositions,
    AlibiPositions,
    BucketedPositions,
    DisentangledPositions,
    DistanceTable,
    GridPositions,
    LearnedPositions,
    PositionSpec,
    RelativePositions,
    RotaryPositions,
    RotaryScaling,
    SinusoidalPositions,
    TablePositions,
)
from core_model.config.stack import ConvolutionSpec, StackConfig
from core_model.config.vectors import AttentionPooling, VectorSpec, VectorsSpec

__all__ = [
    "AbsolutePositions",
    "Activation",
    "AlibiPositions",
    "AttentionPooling",
    "AttentionSpec",
    "AudioEmbedding",
    "BucketedPositions",
    "ConvolutionSpec",
    "DisentangledPositions",
    "DistanceTable",
    "EmbeddingSpec",
    "ExpertsSpec",
    "FeedForwardSpec",
    "GridPositions",
    "HeadSpec",
    "HeadTransform",
    "LayerSpec",
    "LearnedPositions",
    "MaskSpec",
    "ModelConfig",
    "NormSpec",
    "PatchEmbedding",
    "Pooling",
    "PositionSpec",
    "QueryKeyNorm",
    "RelativePositions",
    "ResidualSpec",
    "RotaryPositions",
    "RotaryScaling",
    "SinusoidalPositions",
    "SpecialTokens",
    "StackConfig",
    "TablePositions",
    "TokenEmbedding",
    "VectorEmbedding",
    "VectorSpec",
    "VectorsSpec",
    "ZeroedTokens",
    "multi_head",
]
