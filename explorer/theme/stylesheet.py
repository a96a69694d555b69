"""The one stylesheet of the application: what Fusion draws with bevels and boxes, flat."""

from string import Template

from explorer.theme.colors import Theme

_SHEET = Template("""
QToolTip { background: $raised; color: $text; border: 1px solid $border; padding: 4px 8px; }
""")


def application_stylesheet(theme: Theme) -> str:
    return _SHEET.substitute({role: theme[role] for role in ("raised", "text", "border")})
