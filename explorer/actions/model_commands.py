"""Model: which site, layer and head."""

from __future__ import annotations

from core_model.results import SiteInfo
from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.state.errands import Errand, HealthQuery
from explorer.state.moves import open_source, pick_site, step_head, with_health


def _has_heads(desk: Desk) -> bool:
    return desk.state.selection.site is not None and desk.state.current_model is not None


def _step(key: str, title: str, shortcut: str, d_layer: int, d_head: int, tooltip: str) -> Command:
    return Command(
        key=key,
        title=title,
        menu="Model",
        group="head",
        shortcut=shortcut,
        tooltip=tooltip,
        run=lambda desk: desk.store.apply(step_head(d_layer, d_head)),
        is_enabled=_has_heads,
    )


def _site(site: SiteInfo) -> Command:
    return Command(
        key=f"site_{site.site}",
        title=site.label,
        menu="Model",
        submenu="Site",
        group="head",
        tooltip=f"Look at the {site.label}: {site.n_layers} layers of {site.n_heads} heads.",
        run=lambda desk: desk.store.apply(pick_site(site.site)),
        is_checked=lambda desk: desk.state.selection.site == site.site,
    )


def _reopen(desk: Desk) -> None:
    if source := desk.state.source:
        desk.store.apply(open_source(source.path, inputs=desk.state.inputs, selection=desk.state.selection))


def _check_health(desk: Desk) -> None:
    if model := desk.state.current_model:
        desk.window.run_errand(Errand(query=HealthQuery(source=model.source), learn=with_health))


MODEL_COMMANDS = (
    _step("previous_layer", "Previous layer", "[", -1, 0, "Look at the same head one layer earlier."),
    _step("next_layer", "Next layer", "]", 1, 0, "Look at the same head one layer later."),
    _step("previous_head", "Previous head", ",", 0, -1, "Look at the head before this one."),
    _step("next_head", "Next head", ".", 0, 1, "Look at the head after this one."),
    Command(
        key="reopen",
        title="Read again",
        menu="Model",
        group="file",
        shortcut="F5",
        icon="model",
        tooltip="Read the checkpoint as it is on disk now.",
        run=_reopen,
        is_enabled=lambda desk: desk.state.source is not None,
    ),
    Command(
        key="check_health",
        title="Check weights",
        menu="Model",
        group="file",
        tooltip="Read all weights and look for NaN, Inf, rows of zeros and signs that nobody trained them.",
        run=_check_health,
        is_enabled=lambda desk: desk.state.current_model is not None,
    ),
    Command(
        key="stop",
        title="Stop computing",
        menu="Model",
        group="work",
        icon="stop",
        tooltip="Stop the computation that is running.",
        run=lambda desk: desk.controller.cancel(),
        is_enabled=lambda desk: not desk.controller.is_idle,
    ),
    Command(
        key="retry",
        title="Compute again",
        menu="Model",
        group="work",
        tooltip="Ask again for what failed or was stopped.",
        run=lambda desk: desk.controller.retry(),
        is_enabled=lambda desk: desk.controller.problem is not None,
    ),
)


def site_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a site of the model."""
    model = desk.state.current_model
    return tuple(_site(site) for site in model.info.sites) if model else ()
