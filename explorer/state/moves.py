"""What a person can do to the selection, and what an answer does to the state: functions from state to state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from core_model.sites import ATTENTION_SITES
from explorer.state.app_state import (
    AppState,
    CacheListing,
    Cell,
    LayoutName,
    ModelInput,
    Notice,
    OpenedModel,
    Selection,
    ThemeName,
    Tokens,
    TraceFacts,
    Viewport,
)
from explorer.state.export import ExportChoices
from explorer.state.given_file import FileKind, GivenFile
from explorer.state.source import Assumed, Source

Move: TypeAlias = Callable[[AppState], AppState]
_RECENT_LIMIT = 12
_THUMBNAIL_STEP, _LARGEST_THUMBNAIL = 8, 256


def open_source(
    path: Path,
    *,
    inputs: ModelInput | None = None,
    selection: Selection | None = None,
    is_sample: bool = False,
    assume: Assumed = (),
) -> Move:
    """Look at another checkpoint, or at the same one as it is now on disk, in the layout for looking.

    The input stays unless another is given, or the checkpoint turns out to be a run, which brings its own.
    """

    def move(state: AppState) -> AppState:
        opening = state.source.opening + 1 if state.source else 0
        kept = replace(state.inputs, pair="", target="")
        is_another = state.is_input_kept or state.source is None or state.source.path != path
        return replace(
            state,
            source=Source(path=path, opening=opening, is_sample=is_sample, assume=assume),
            inputs=inputs or kept,
            is_input_kept=inputs is None and is_another,
            selection=selection or Selection(),
            hover=None,
            layout="explore",
        )

    return move


def in_same_layout(move: Move) -> Move:
    """The same move where nobody asked to see what comes of it: the layout stays."""
    return lambda state: replace(move(state), layout=state.layout)


def set_inputs(inputs: ModelInput) -> Move:
    """Read something else. The locked cell is let go, for it belonged to the old tokens."""
    return lambda state: replace(
        state, inputs=inputs, is_input_kept=False, selection=replace(state.selection, cell=None), hover=None
    )


def give_file(kind: FileKind, path: Path | None) -> Move:
    """Read another picture or sound; None takes it away. Of two towers the one that reads it is looked at then."""
    file = None if path is None else GivenFile.at(path)

    def move(state: AppState) -> AppState:
        state = set_inputs(replace(state.inputs, **{kind: file}))(state)
        model = state.current_model
        tower = model.site("vision.self") if model and kind == "picture" and file else None
        return pick_site(tower.site)(state) if tower else state

    return move


def pick_site(site: str) -> Move:
    """Look at another attention site, at its nearest layer and head."""
    return lambda state: _settled(
        replace(state, selection=Selection(site=site, layer=state.selection.layer, head=state.selection.head))
    )


def pick_head(layer: int, head: int) -> Move:
    """Look at another head, at the same cell."""
    return lambda state: _settled(replace(state, selection=replace(state.selection, layer=layer, head=head)))


def step_head(d_layer: int, d_head: int) -> Move:
    """Go so many layers and heads on, stopping at the ends."""
    return lambda state: pick_head(state.selection.layer + d_layer, state.selection.head + d_head)(state)


def lock_cell(cell: Cell | None) -> Move:
    """Keep telling about a cell wherever the mouse goes; None lets go."""
    return lambda state: replace(state, selection=replace(state.selection, cell=cell))


def hover_cell(cell: Cell | None) -> Move:
    """The mouse is over a cell, or over none."""
    return lambda state: replace(state, hover=cell)


def set_viewport(viewport: Viewport) -> Move:
    """Another part of the matrix is on screen."""
    return lambda state: replace(state, viewport=viewport)


def set_thumbnail_size(pixels: int) -> Move:
    """Each head of the overview has so many pixels; rounded down, so that not every step of a resize asks anew."""
    size = min(max(pixels // _THUMBNAIL_STEP, 1) * _THUMBNAIL_STEP, _LARGEST_THUMBNAIL)
    return lambda state: replace(state, thumbnail_size=size)


def set_display(**changes: object) -> Move:
    """Draw differently: fields of Display."""
    return lambda state: replace(state, display=replace(state.display, **changes))


def set_theme(theme: ThemeName) -> Move:
    """Dress the window in other colours."""
    return lambda state: replace(state, theme=theme)


def set_layout(layout: LayoutName) -> Move:
    """Arrange the panels for another work."""
    return lambda state: replace(state, layout=layout)


def set_position_curves(dimensions: tuple[int, ...]) -> Move:
    """Draw these dimensions of the positional encoding as curves."""
    return lambda state: replace(state, position_curves=dimensions)


def set_position_length(length: int) -> Move:
    """Show so many positions, at least two and no more than a screen can show."""
    return lambda state: replace(state, position_length=min(max(length, 2), 4096))


def set_export(choices: ExportChoices) -> Move:
    """Remember what was chosen for the export."""
    return lambda state: replace(state, export=choices)


def add_notice(notice: Notice) -> Move:
    """Tell the person something."""
    return lambda state: replace(state, notices=(*state.notices, notice))


def with_cache(listing: CacheListing) -> Move:
    """What the Hub's local cache holds."""
    return lambda state: replace(state, cache=listing)


def with_model(opened: OpenedModel) -> Move:
    """The source turned out to be this; the selection comes to rest on something the model has."""

    def move(state: AppState) -> AppState:
        if opened.source != state.source:
            return state
        recent = state.recent if opened.source.is_sample else with_recent(state.recent, opened.source.path)
        inputs = _example(opened) if state.is_input_kept else None
        known = replace(state, model=opened, recent=recent, is_input_kept=False)
        return _settled(replace(known, inputs=inputs or _readable(state.inputs, opened)))

    return move


def with_health(opened: OpenedModel) -> Move:
    """All values of the checkpoint were looked at: its card says what was found, a notice how many things."""

    def move(state: AppState) -> AppState:
        if opened.source != state.source:
            return state
        n = len(opened.info.warnings)
        found = (
            "nothing to remark" if n == 0 else f"{n} to know, see the model card" if n > 1 else opened.info.warnings[0]
        )
        notice = Notice(severity="warning" if n else "info", text=f"{opened.info.name}: {found}")
        return replace(state, model=opened, notices=(*state.notices, notice))

    return move


def with_tokens(tokens: Tokens) -> Move:
    """The input has these tokens; a locked cell outside them is let go, and a site that was given nothing left."""
    return lambda state: _settled(_where_read(replace(state, tokens=tokens)))


def without_tokens(state: AppState) -> AppState:
    """What is given cannot be read: the tokens of what was given before are no longer awaiting others."""
    return replace(state, tokens=None)


def with_trace(facts: TraceFacts) -> Move:
    """The model was run over the input; its card may say more now that its weights were read."""

    def move(state: AppState) -> AppState:
        model = state.model
        if model is not None and model.source == facts.source:
            model = replace(model, info=facts.info)
        told = [_not_numbers(facts, site, layers) for site, layers in facts.not_numbers]
        told += [Notice(severity="info", text=f"{facts.info.name}: {note}") for note in facts.notes]
        notices = (*state.notices, *told)
        return replace(state, trace=facts, model=model, notices=notices)

    return move


def _not_numbers(facts: TraceFacts, site: str, layers: tuple[int, ...]) -> Notice:
    which = ", ".join(map(str, layers))
    text = f"{facts.info.name}: attention in {ATTENTION_SITES.get(site, site)}, layer {which}, is not a number (NaN)"
    return Notice(severity="warning", text=f"{text}: stored weights are no numbers, or the scores overflow.")


def with_recent(recent: tuple[Path, ...], path: Path) -> tuple[Path, ...]:
    """The recent files with this one first."""
    return (path, *(other for other in recent if other != path))[:_RECENT_LIMIT]


def _example(model: OpenedModel) -> ModelInput | None:
    """What a run was watched on; None of what is no run, or of one that does not tell."""
    run = model.info.run
    return ModelInput(text=run.text, target=run.target) if run and run.text else None


def _readable(inputs: ModelInput, model: OpenedModel) -> ModelInput:
    """What the model reads of it: words of another model say nothing to one that has no tokenizer and reads ids."""
    read = inputs.only(model.reads)
    is_ids = all(word.isdigit() for text in read.texts for word in text.replace(",", " ").split())
    return read if model.has_tokenizer or is_ids else read.only(("picture", "sound"))


def _where_read(state: AppState) -> AppState:
    """The same at a site that something was given; a tower without any input is left for the other."""
    tokens, chosen, model = state.current_tokens, state.selection.site, state.current_model
    if tokens is None or model is None or chosen is None or tokens.has(chosen):
        return state
    return pick_site(model.first_site(tokens))(state)


def _settled(state: AppState) -> AppState:
    """The same with a selection that exists: a site of the model, its layer and head, a cell of the tokens."""
    model, chosen = state.current_model, state.selection
    if model is None or not model.info.sites:
        return state
    site = model.site(chosen.site or "") or model.info.sites[0]
    settled = Selection(
        site=site.site,
        layer=min(max(chosen.layer, 0), site.n_layers - 1),
        head=min(max(chosen.head, 0), site.n_heads - 1),
        cell=chosen.cell,
    )
    state = replace(state, selection=settled)
    return state if state.current_tokens is None else replace(state, selection=replace(settled, cell=state.locked))
