"""The families of checkpoints we know: one file and one row each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from core_model.checkpoint.families import (
    albert,
    bart,
    beit,
    bert,
    bloom,
    clip,
    codegen,
    cohere,
    deberta,
    deberta_v2,
    deit,
    dinov2,
    distilbert,
    electra,
    esm,
    falcon,
    gemma,
    gemma2,
    gemma3,
    gpt2,
    gpt_bigcode,
    gpt_neo,
    gpt_neox,
    gpt_oss,
    gptj,
    granite,
    llama,
    m2m100,
    marian,
    mbart,
    mistral,
    mistral_native,
    mixtral,
    modernbert,
    mpnet,
    mpt,
    nanogpt,
    olmo,
    olmo2,
    openai_gpt,
    opt,
    pegasus,
    phi,
    phi3,
    qwen2,
    qwen2_moe,
    qwen3,
    qwen3_moe,
    roberta,
    roformer,
    siglip,
    smollm3,
    stablelm,
    starcoder2,
    t5,
    timm_vit,
    torch_modules,
    vit,
    whisper,
    xglm,
)
from core_model.checkpoint.families.family import Family, unwrapped, weights_of
from core_model.shapes import Shape

FAMILIES: tuple[Family, ...] = (
    nanogpt.FAMILY,  # before GPT-2, whose names it has with other shapes
    gpt2.FAMILY,
    bert.FAMILY,
    llama.FAMILY,
    mistral.FAMILY,
    mistral_native.FAMILY,
    mixtral.FAMILY,
    qwen2.FAMILY,
    qwen2_moe.FAMILY,
    qwen3.FAMILY,
    qwen3_moe.FAMILY,
    gemma.FAMILY,
    gemma2.FAMILY,
    gemma3.FAMILY,
    phi.FAMILY,
    phi3.FAMILY,
    olmo.FAMILY,
    olmo2.FAMILY,
    smollm3.FAMILY,
    stablelm.FAMILY,
    starcoder2.FAMILY,
    cohere.FAMILY,
    granite.FAMILY,
    gpt_oss.FAMILY,
    openai_gpt.FAMILY,
    gpt_neo.FAMILY,
    gptj.FAMILY,
    gpt_neox.FAMILY,
    codegen.FAMILY,
    opt.FAMILY,
    bloom.FAMILY,
    falcon.FAMILY,
    mpt.FAMILY,
    gpt_bigcode.FAMILY,
    xglm.FAMILY,
    roformer.FAMILY,
    t5.T5,
    t5.MT5,
    t5.UMT5,
    pegasus.FAMILY,
    mbart.FAMILY,
    marian.FAMILY,
    m2m100.FAMILY,
    bart.FAMILY,
    roberta.FAMILY,
    mpnet.FAMILY,
    modernbert.FAMILY,
    esm.FAMILY,
    electra.FAMILY,
    distilbert.FAMILY,
    albert.FAMILY,
    deberta.FAMILY,
    deberta_v2.FAMILY,
    deit.FAMILY,  # what has more than another comes before it
    beit.FAMILY,
    beit.DATA2VEC,
    dinov2.REGISTERS,
    dinov2.FAMILY,
    vit.FAMILY,
    clip.FAMILY,
    clip.TEXT,
    clip.VISION,
    siglip.FAMILY,
    siglip.TEXT,
    siglip.VISION,
    whisper.FAMILY,
    timm_vit.FAMILY,
    torch_modules.TRANSFORMER,
    torch_modules.ENCODER,
    torch_modules.LAYER,
    torch_modules.DECODER,
    torch_modules.DECODER_LAYER,
    torch_modules.ATTENTION,
)

OWN_DOCUMENTS = tuple(family.document for family in FAMILIES if family.document is not None)
"""Files that state the settings of a model in the place of config.json."""


def family_of(model_type: str | None, architecture: str | None) -> Family | None:
    """The family a config names by its model_type or, without one, by the class of transformers it was saved from."""
    for family in FAMILIES:
        if model_type in family.model_types or (model_type is None and architecture in family.architectures):
            return family
    return None


def family_of_tensors(shapes: Mapping[str, Shape], families: Iterable[Family] = FAMILIES) -> Family | None:
    """The first of `families` whose telling names a file has; None for names that several families share."""
    names = [unwrapped(name) for name in shapes]
    for family in families:
        found = [any(re.fullmatch(marker, name) for name in names) for marker in family.markers]
        if found and all(found) and family.fit(weights_of(family.names, shapes)):
            return family
    return None
