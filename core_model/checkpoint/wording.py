"""See `core_model.wording`."""

from core_model.wording import shown

__all__ = ["shown"]
