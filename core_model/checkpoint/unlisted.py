"""What is known by name and not read: what it is, and why no attention of it is shown."""

from __future__ import annotations

from collections.abc import Iterable

_MODEL_TYPES = {
    "a model without attention": "mamba mamba2 falcon_mamba rwkv fnet xlstm resnet convnext convnextv2 poolformer",
    "a hybrid, whose layers are mostly recurrent and only some attention": (
        "jamba bamba zamba zamba2 recurrent_gemma granitemoehybrid nemotron_h falcon_h1 lfm2 qwen3_next minimax"
    ),
    "a model that attends to chosen positions only, by a pattern that is not computed here": (
        "longformer led big_bird bigbird_pegasus reformer longt5 nystromformer yoso mra"
    ),
    "a model that attends within windows of an image, so that there is no one matrix": (
        "swin swinv2 donut-swin swin2sr maskformer-swin hiera pvt pvt_v2 segformer"
    ),
    "a model that attends over compressed keys (multi-head latent attention), which is not computed here": (
        "deepseek_v2 deepseek_v3 minicpm3 glm4_moe_lite longcat_flash"
    ),
    "a model that shortens its sequence between layers, with matrices of many sizes": "funnel perceiver canine",
    "a model of raw sound, which it reads through convolutions that are not computed here": (
        "wav2vec2 wav2vec2-conformer wav2vec2-bert hubert wavlm sew sew-d unispeech data2vec-audio speecht5"
    ),
    "several models in one, of pictures and of text, whose parts are not read out of the whole": (
        "llava llava_next llava_onevision qwen2_vl qwen2_5_vl qwen3_vl gemma3 llama4 mllama idefics idefics2 idefics3 "
        "paligemma blip blip-2 instructblip git flava internvl mistral3 pixtral"
    ),
}
_WHAT_IT_IS = {name: reason for reason, names in _MODEL_TYPES.items() for name in names.split()}
"""What it is, by its model_type."""

_BY_NAMES = (
    (".mixer.A_log", "a model without attention (Mamba)"),
    (
        "bias_k",
        "a torch.nn.MultiheadAttention with a learned key and value (add_bias_kv), which are not computed here",
    ),
    (
        "q_proj_weight",
        "a torch.nn.MultiheadAttention with keys and values of other widths (kdim, vdim), read from two other sources",
    ),
    (
        "in_proj_weight",
        "several torch.nn.MultiheadAttention without the layers around them: save the state dict of one",
    ),
)
"""Ends of names of tensors, and what has them; the first that is found tells."""


def reason_by_type(model_type: str | None) -> str | None:
    """What a model of this type is, as the end of "it is ..."; None for a type nothing is known of."""
    what = _WHAT_IT_IS.get(model_type or "")
    return None if what is None else f"{model_type}, {what}"


def reason_by_names(names: Iterable[str]) -> str | None:
    """What a file with these tensors is; None when nothing is known of it."""
    ends = tuple(names)
    return next((what for end, what in _BY_NAMES if any(name.endswith(end) for name in ends)), None)
