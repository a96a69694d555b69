"""One line of a form: name, editor, unit, and what is wrong with the value."""

from PySide6.QtWidgets import QWidget


class FieldRow(QWidget):
    """The message has its room reserved, so nothing moves when it appears."""

    def __init__(
        self, label: str, editor: QWidget, *, unit: str = "", tooltip: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)

    @property
    def editor(self) -> QWidget: ...
    def set_error(self, message: str) -> None:
        """Show what is wrong; "" clears it."""

    def set_hint(self, message: str) -> None:
        """A muted remark in the same place, for example "2.1 million parameters"; an error covers it."""
