"""View: layouts, panels, colours, zoom."""

from __future__ import annotations

from typing import get_args

from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.panels.panel import PanelSpec
from explorer.panels.registry import PANELS
from explorer.state.app_state import ColormapName, LayoutName, ScaleName, ThemeName
from explorer.state.moves import set_display, set_theme
from explorer.viewmodels.colormap_labels import COLORMAP_LABELS
from explorer.viewmodels.scales import SCALE_LABELS

_THEME_LABELS: dict[ThemeName, tuple[str, str]] = {
    "system": ("As the system", "system"),
    "light": ("Light", "sun"),
    "dark": ("Dark", "moon"),
}
_SCALES: tuple[ScaleName, ...] = get_args(ScaleName)
_LAYOUTS: dict[LayoutName, tuple[str, str, str, str]] = {
    "explore": ("Explore", "matrix", "Ctrl+Shift+E", "See what every head of a model attends to."),
    "train": ("Train", "train", "Ctrl+Shift+T", "Train a small model and watch it learn."),
    "learn": ("Learn", "learn", "Ctrl+Shift+L", "See positions, schedules and the other parts of the recipe."),
}


def _theme(name: ThemeName) -> Command:
    label, icon = _THEME_LABELS[name]
    return Command(
        key=f"theme_{name}",
        title=label,
        menu="View",
        group="look",
        submenu="Theme",
        icon=icon,
        tooltip=f"Colours of the window: {label.lower()}.",
        run=lambda desk: desk.store.settle(set_theme(name)),
        is_checked=lambda desk: desk.state.theme == name,
    )


def _scale(name: ScaleName) -> Command:
    return Command(
        key=f"scale_{name}",
        title=SCALE_LABELS[name].title,
        menu="View",
        group="look",
        submenu="Scale",
        tooltip=SCALE_LABELS[name].meaning,
        run=lambda desk: desk.store.apply(set_display(scale=name)),
        is_checked=lambda desk: desk.state.display.scale == name,
    )


def _colormap(name: ColormapName) -> Command:
    return Command(
        key=f"colormap_{name}",
        title=COLORMAP_LABELS[name],
        menu="View",
        group="look",
        submenu="Colour map",
        tooltip=f"Draw attention in the colour map {COLORMAP_LABELS[name]}.",
        run=lambda desk: desk.store.apply(set_display(colormap=name)),
        is_checked=lambda desk: desk.state.display.colormap == name,
    )


def _layout(name: LayoutName) -> Command:
    title, icon, shortcut, tooltip = _LAYOUTS[name]
    return Command(
        key=f"layout_{name}",
        title=title,
        menu="View",
        group="layout",
        submenu="Layout",
        shortcut=shortcut,
        icon=icon,
        tooltip=tooltip,
        run=lambda desk: desk.window.show_layout(name),
        is_checked=lambda desk: desk.state.layout == name,
    )


def _panel(spec: PanelSpec) -> Command:
    return Command(
        key=f"panel_{spec.key}",
        title=spec.title,
        menu="View",
        group="layout",
        submenu="Panels",
        shortcut=spec.shortcut,
        icon=spec.icon,
        tooltip=spec.tooltip,
        run=lambda desk: desk.window.toggle_panel(spec.key),
        is_checked=lambda desk: desk.window.is_panel_open(spec.key),
    )


def _next_scale(desk: Desk) -> None:
    following = _SCALES[(_SCALES.index(desk.state.display.scale) + 1) % len(_SCALES)]
    desk.store.apply(set_display(scale=following))


def layouts_in_use() -> tuple[LayoutName, ...]:
    """The layouts that have a panel."""
    return tuple(name for name in _LAYOUTS if any(name in spec.layouts for spec in PANELS))


def _zoom(key: str, title: str, shortcut: str, step: int, tooltip: str) -> Command:
    return Command(
        key=key,
        title=title,
        menu="View",
        group="zoom",
        shortcut=shortcut,
        icon=key.replace("_", "-"),
        tooltip=tooltip,
        run=lambda desk: desk.window.zoom(step),
    )


def _tab(number: int) -> Command:
    return Command(
        key=f"tab_{number}",
        title=f"Centre tab {number}",
        menu="View",
        group="layout",
        submenu="Panels",
        shortcut=str(number),
        tooltip=f"Show tab {number} of the centre.",
        run=lambda desk: desk.window.show_centre_tab(number - 1),
    )


_N_TABS = max(sum(spec.area == "centre" and name in spec.layouts for spec in PANELS) for name in _LAYOUTS)

VIEW_COMMANDS = (
    *(_layout(name) for name in layouts_in_use()),
    *(_panel(spec) for spec in PANELS if spec.area != "centre"),
    *(_tab(number) for number in range(1, _N_TABS + 1)),
    Command(
        key="reset_layout",
        title="Reset layout",
        menu="View",
        group="layout",
        tooltip="Put every panel of this layout back in its place.",
        run=lambda desk: desk.window.reset_layout(),
    ),
    *(_scale(name) for name in _SCALES),
    Command(
        key="next_scale",
        title="Next scale",
        menu="View",
        group="look",
        submenu="Scale",
        shortcut="S",
        tooltip="Go through the four colour scales.",
        run=_next_scale,
    ),
    *(_colormap(name) for name in COLORMAP_LABELS),
    *(_theme(name) for name in _THEME_LABELS),
    _zoom("zoom_in", "Zoom in", "+|=|Ctrl++|Ctrl+=", 1, "See fewer cells, larger."),
    _zoom("zoom_out", "Zoom out", "-|Ctrl+-", -1, "See more cells, smaller."),
    _zoom("zoom_fit", "Whole matrix", "0|Ctrl+0", 0, "See all cells."),
)
