"""DistilBERT (Sanh et al. 2019): BERT without token types, under names of its own."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import BARE, TABLE, EncoderHeads, HeadForm
from core_model.checkpoint.families.family import read_sizes
from core_model.checkpoint.families.fields import Count, Rate, TextKeys, TokenId
from core_model.checkpoint.families.plan import read_plan
from core_model.config import LearnedPositions, MaskSpec, NormSpec, StackConfig

_HEADS = EncoderHeads(
    forms={
        "masked_language_model": HeadForm(
            transform="vocab_transform", norm="vocab_layer_norm", output="vocab_projector", activation_key="activation"
        ),
        "sequence_classes": HeadForm(
            transform="pre_classifier", activation="relu", output="classifier", pooling="first"
        ),
        **BARE,
    },
)
_PLACES = {
    "n_layers": "n_layers",
    "n_heads": "n_heads",
    "d_model": "dim",
    "d_hidden": "hidden_dim",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
    "activation": "activation",
    "residual_dropout": "dropout",
    "embedding_dropout": "dropout",
    "attention_dropout": "attention_dropout",
}


@dataclass(frozen=True, kw_only=True)
class DistilBertKeys(TextKeys):
    """The keys of config.json that decide what is computed."""

    dim: Count
    n_layers: Count
    n_heads: Count
    hidden_dim: Count
    max_position_embeddings: Count = 512
    activation: str = "gelu"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    pad_token_id: TokenId = 0


def _read(keys: DistilBertKeys) -> StackConfig:
    plan = read_plan(keys, _PLACES, norm=NormSpec(eps=1e-12), mask=MaskSpec(), post_norm=True)
    return encoders.bert_stack(plan, position=LearnedPositions(max_length=keys.max_position_embeddings))


_LAYER = {
    "attention.q_lin.*": "attention.query.*",
    "attention.k_lin.*": "attention.key.*",
    "attention.v_lin.*": "attention.value.*",
    "attention.out_lin.*": "attention.output.*",
    "sa_layer_norm.*": "attention_residual.total.*",
    "ffn.lin1.*": "feed_forward.input.*",
    "ffn.lin2.*": "feed_forward.output.*",
    "output_layer_norm.*": "feed_forward_residual.total.*",
}

FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    key="distilbert",
    label="DistilBERT",
    architectures=encoders.architectures("DistilBert", ForMultipleChoice="sequence_classes"),
    keys=DistilBertKeys,
    sizes=read_sizes(
        {
            "vocab_size": (TABLE, 0),
            "dim": (TABLE, 1),
            "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
            "hidden_dim": ("transformer.layer.0.ffn.lin1.weight", 0),
        },
        n_layers="transformer.layer.{i}.ffn.lin1.weight",
    ),
    places=_PLACES,
    names=encoders.bert_names(
        _HEADS,
        *encoders.EMBEDDING,
        *encoders.encoder_rows(_LAYER, layer="transformer.layer.{i}"),
        prefixes=("distilbert.",),
    ),
    aliases={"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"},
    markers=(r"(distilbert\.)?transformer\.layer\.0\.attention\.q_lin\.weight",),
)
