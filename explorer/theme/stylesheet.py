"""The one stylesheet of the application, filled with a theme's colours."""

from pathlib import Path
from string import Template

from explorer.theme.colors import ROLES, Theme

_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "themes"


def application_stylesheet(theme: Theme) -> str:
    """Fusion draws bevels and boxes where this application has flat surfaces and one border colour."""
    template = Template((_FOLDER / "application.qss").read_text(encoding="utf-8"))
    colors = {role: theme[role] for role in ROLES}
    return template.substitute(colors, name=theme.name, folder=_FOLDER.as_posix())
