"""The named colours of the two themes. Colour carries meaning or is grey."""

from dataclasses import dataclass, fields

from explorer.theme.oklch import oklch_to_hex

_GOLDEN_TURN = 0.381966
"""Fraction of a turn between neighbouring hues: the golden section keeps any number of them apart."""


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Colours by role, each "#rrggbb"."""

    name: str
    is_dark: bool

    window: str
    """Behind everything."""
    surface: str
    """Behind pictures, lists and text fields."""
    raised: str
    """Buttons, chips, menus, tooltips."""
    hover: str
    pressed: str
    border: str
    """The one border colour."""
    grid: str
    text: str
    text_muted: str
    text_disabled: str
    accent: str
    """Focus, selection, progress: a grey of its own, so that blue stays with the queries."""
    accent_text: str
    selection: str
    """Behind selected text and rows."""
    query: str
    key: str
    value: str
    output: str
    query_tint: str
    """Behind text that is marked as the query."""
    key_tint: str
    running: str
    warning: str
    error: str
    ok: str
    warning_tint: str
    error_tint: str
    hatch: str
    """Lines over masked cells."""
    missing: str
    """Dots over cells that were not computed."""
    cursor: str
    """Border of the marked cell, readable on every colour map together with `cursor_halo`."""
    cursor_halo: str
    series_1: str
    series_2: str
    series_3: str
    series_4: str
    series_5: str
    series_6: str
    series_7: str
    series_8: str

    def __getitem__(self, role: str) -> str:
        """Colour of a role that is known by name only. Raises KeyError for an unknown one."""
        if role not in ROLES:
            raise KeyError(role)
        return str(getattr(self, role))

    def head_color(self, layer: int, head: int) -> str:
        """Hue of a head, the same in every view, equally light for all heads of a theme."""
        turn = ((head + 0.5 * (layer % 2)) * _GOLDEN_TURN + layer * 0.11) % 1.0
        lightness, chroma = (0.76, 0.13) if self.is_dark else (0.55, 0.15)
        return oklch_to_hex(lightness, chroma, 360.0 * turn)


LIGHT = Theme(
    name="light",
    is_dark=False,
    window="#f4f5f6",
    surface="#ffffff",
    raised="#ffffff",
    hover="#e9ebee",
    pressed="#dcdfe3",
    border="#d3d7dc",
    grid="#e6e8eb",
    text="#1c2127",
    text_muted="#5a636e",
    text_disabled="#9aa2ab",
    accent="#3f566e",
    accent_text="#ffffff",
    selection="#dbe3ec",
    query="#1560bd",
    key="#a94f00",
    value="#1c7438",
    output="#7636b8",
    query_tint="#dbe9fb",
    key_tint="#fde7d0",
    running="#3f566e",
    warning="#855800",
    error="#b3261e",
    ok="#1c7438",
    warning_tint="#fdf3dc",
    error_tint="#fdeae8",
    hatch="#d9dce0",
    missing="#b9bfc6",
    cursor="#ffffff",
    cursor_halo="#1c2127",
    series_1="#2f6ab3",
    series_2="#bf5b17",
    series_3="#2a8050",
    series_4="#8a4bb5",
    series_5="#94700f",
    series_6="#14818f",
    series_7="#bb3f73",
    series_8="#68717c",
)

DARK = Theme(
    name="dark",
    is_dark=True,
    window="#191c20",
    surface="#121518",
    raised="#262a30",
    hover="#2d3238",
    pressed="#383e46",
    border="#343a42",
    grid="#22262b",
    text="#e4e7eb",
    text_muted="#9da6b1",
    text_disabled="#626b76",
    accent="#9db4cc",
    accent_text="#14181d",
    selection="#2c3643",
    query="#6cabff",
    key="#f5a04e",
    value="#68c784",
    output="#c39afa",
    query_tint="#1c3350",
    key_tint="#45301a",
    running="#9db4cc",
    warning="#e6b94d",
    error="#ff8d84",
    ok="#68c784",
    warning_tint="#352c17",
    error_tint="#36201f",
    hatch="#31363d",
    missing="#555d67",
    cursor="#ffffff",
    cursor_halo="#121518",
    series_1="#6ea6ea",
    series_2="#f0955a",
    series_3="#62c08a",
    series_4="#bd8ce8",
    series_5="#d6b04a",
    series_6="#4fbdcb",
    series_7="#ee82ab",
    series_8="#a3acb7",
)

ROLES = tuple(field.name for field in fields(Theme) if field.name not in ("name", "is_dark"))
