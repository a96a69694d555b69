"""What is written for the tokens, patches or frames that a model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.theme.token_text import Name, Reading

if TYPE_CHECKING:
    from core_model.tokenize import Encoding


def token_names(encoding: Encoding) -> tuple[str, ...]:
    """Tokens as decoded, to be written with signs for their spaces; patches by their names, frames by their time."""
    kinds = {"token": str, "patch": Name, "frame": Reading}
    return tuple(map(kinds[encoding.unit], encoding.texts))
