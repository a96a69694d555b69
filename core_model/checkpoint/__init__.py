"""Checkpoints: opening what people have, safely, and writing what they can use elsewhere.

`open_checkpoint` reads names, shapes and configs without torch; torch is imported when a model is loaded.

    what lies at a path     folder, recognise (other formats by their first bytes), hub_cache
    fetching                hub, hub_file (one file), hub_offer (what would come)
    files, safely           header, files, stored_types, shards, json_text; pickles and pickle_child
    which model it is       reading, by families/, stated, assuming, matching; quantised and unlisted say why not
    a LoRA adapter          adapter, adapter_config, adapter_plan, merging
    what is told of it      facts, describe, health
    what it is given        giving, by text and preprocessing
    its weights             loading, weights
    our own run folders     native, config_codec
    writing for others      export, folding, convert; writing is how all files are written
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_model.checkpoint.open import Checkpoint, open_checkpoint

__all__ = ["Checkpoint", "open_checkpoint"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from core_model.checkpoint import open as opening

        return getattr(opening, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
