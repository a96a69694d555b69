"""The image processors of transformers that work with Pillow: what each does by itself, and which family has which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core_model.errors import InputError
from core_model.wording import shown

IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_SQUARE, _SHORTER = {"height": 224, "width": 224}, {"shortest_edge": 224}
_WIDER = {"height": 256, "width": 256}
_MIDDLE = {"do_center_crop": True, "crop_size": _SQUARE}

PROCESSORS: Mapping[str, Mapping[str, Any]] = {
    "ViT": {"size": _SQUARE, "resample": 2, **_HALF},
    "DeiT": {"size": _WIDER, "resample": 3, **_MIDDLE, **_HALF},
    "Beit": {"size": _SQUARE, "resample": 3, "crop_size": _SQUARE, **_HALF},
    "Bit": {"size": _SHORTER, "resample": 3, **_MIDDLE, **_CLIP},
    "CLIP": {"size": _SHORTER, "resample": 3, **_MIDDLE, **_CLIP},
    "Siglip": {"size": _SQUARE, "resample": 3, **_HALF},
}
"""The keys each processor has where a preprocessor_config.json leaves them out."""
READ_SHORTER_SIDE = ("Bit", "CLIP", "Siglip")
"""Those to which one number is the length of the shorter side; to the others it is that of both."""

USUAL: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "vit": ("ViT", {}),
    "deit": ("DeiT", IMAGENET),
    "beit": ("Beit", {"resample": 2}),
    "data2vec_vision": ("Beit", {"resample": 2}),
    "dinov2": ("Bit", {"size": {"shortest_edge": 256}, **IMAGENET}),
    "dinov2_with_registers": ("Bit", {"size": {"shortest_edge": 256}, **IMAGENET}),
    "clip": ("CLIP", {}),
    "clip_vision": ("CLIP", {}),
    "siglip": ("Siglip", {}),
    "siglip_vision": ("Siglip", {}),
    "native": ("ViT", {}),
    "timm_vit": ("ViT", {"size": {"shortest_edge": 248}, "resample": 3, **_MIDDLE}),
}
"""What the published models of a family that read 224 x 224 pixels have: their processor, and the keys they state."""

_ENDINGS = ("FeatureExtractor", "ImageProcessorFast", "ImageProcessorPil", "ImageProcessor")


def processor_of(document: Mapping[str, Any], family: str, file: str) -> str:
    """The image processor a preprocessor_config.json names, else that of the family; InputError for an unknown one."""
    named = document.get("image_processor_type") or document.get("feature_extractor_type")
    if named is None:
        return USUAL[family][0]
    found = next((key for key in PROCESSORS for ending in _ENDINGS if named == f"{key}{ending}"), None)
    if found is None:
        known = ", ".join(f"{key}ImageProcessor" for key in PROCESSORS)
        raise InputError(
            f"image_processor_type is {shown(repr(named))} in {file}: its steps are not known here, "
            f"but those of {known} are"
        )
    return found
