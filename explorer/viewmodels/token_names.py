"""What is written for the tokens, patches or frames that a model reads."""

from __future__ import annotations

from core_model.tokenize.encoding import Encoding
from explorer.theme.token_text import Name


def token_names(encoding: Encoding) -> tuple[str, ...]:
    """Tokens as decoded, to be written with signs for their spaces; patches and frames by their names."""
    return encoding.texts if encoding.unit == "token" else tuple(map(Name, encoding.texts))
