"""Model: which site, layer and head."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication

from core_model.results import SiteInfo
from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.state.errands import Errand, HealthQuery
from explorer.state.moves import open_source, pick_site, step_head, with_health
from explorer.state.training_moves import watch_head
from explorer.viewmodels.training import stepped


def _has_heads(desk: Desk) -> bool:
    if desk.state.layout == "train":
        return desk.state.training.settings is not None
    return desk.state.selection.site is not None and desk.state.current_model is not None


def _step_shown(desk: Desk, d_layer: int, d_head: int) -> None:
    """The head that the layout shows: that of the open model or, where one trains, the watched one."""
    if desk.state.layout != "train":
        desk.store.apply(step_head(d_layer, d_head))
    elif desk.trainer.snapshot is not None and desk.trainer.snapshot.probe is not None:
        desk.store.settle(watch_head(stepped(desk.state.watched, desk.trainer.snapshot.probe, d_layer, d_head)))


def _step(key: str, title: str, shortcut: str, d_layer: int, d_head: int, tooltip: str) -> Command:
    return Command(
        key=key,
        title=title,
        menu="Model",
        group="head",
        shortcut=shortcut,
        tooltip=tooltip,
        run=lambda desk: _step_shown(desk, d_layer, d_head),
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
        state = desk.state
        inputs = state.inputs.as_on_disk()
        desk.store.apply(open_source(source.path, inputs=inputs, selection=state.selection, assume=source.assume))


def _needs(fact: str) -> Callable[[Desk], bool]:
    """Whether the model that is open lacks a fact which a person may give."""
    return lambda desk: desk.state.current_model is not None and fact in desk.state.current_model.info.needs


def _give(desk: Desk, fact: str, value: int | str | None) -> None:
    if (source := desk.state.source) is not None and value is not None:
        known = (*(pair for pair in source.assume if pair[0] != fact), (fact, value))
        desk.store.apply(open_source(source.path, inputs=desk.state.inputs, assume=known))


def _give_base(desk: Desk) -> None:
    title = QCoreApplication.translate("Command", "The model that the adapter belongs to")
    base = desk.window.questions.folder(title)
    _give(desk, "base", None if base is None else str(base))


def _give_heads(desk: Desk) -> None:
    title = QCoreApplication.translate("Command", "Number of heads")
    label = QCoreApplication.translate("Command", "Heads of each layer, which no file states:")
    _give(desk, "n_heads", desk.window.questions.number(title, label))


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
        tooltip="Read the checkpoint, and the picture or sound it was given, as they are on disk now.",
        run=_reopen,
        is_enabled=lambda desk: desk.state.source is not None,
    ),
    Command(
        key="give_base",
        title="Choose base model…",
        menu="Model",
        group="file",
        tooltip="Name the folder of the model that this adapter belongs to, and merge the two.",
        run=_give_base,
        is_enabled=_needs("base"),
    ),
    Command(
        key="give_heads",
        title="Give number of heads…",
        menu="Model",
        group="file",
        tooltip="Say how many heads each layer has, where no file states it.",
        run=_give_heads,
        is_enabled=_needs("n_heads"),
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
