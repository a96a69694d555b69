"""What to do next where there is nothing to show, and what stands in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from explorer.state.app_state import AppState, OpenedModel
from explorer.state.outcome import Problem

Guidance: TypeAlias = tuple[str, str]
"""A sentence, and the key of the command that does it; no command where it is empty."""
GuidanceFunction: TypeAlias = Callable[[AppState], Guidance]

_GIVING = {"base": "give_base", "n_heads": "give_heads"}
"""The command that asks for a fact which no file states."""


def first_steps(state: AppState) -> Guidance:
    """Open something, then give it what it reads; of two towers the one that is looked at goes first."""
    if state.source is None:
        return "Open a model to see what each of its heads attends to.", "open_folder"
    model, site = state.current_model, state.selection.site or ""
    if model is None:
        return "Type a text, and see what each head attends to.", "focus_text"
    if not model.reads:
        return _no_input(model), "open_folder"
    what, command = _what_to_give(model, site)
    return f"{what}, and see what each head attends to.", command


def _what_to_give(model: OpenedModel, site: str) -> Guidance:
    if "sound" in model.reads:
        return "Open a WAV file, or drop one on the window", "open_sound"
    if "picture" in model.reads and ("text" not in model.reads or site == "vision.self"):
        return "Open a picture, or drop one on the window", "open_picture"
    if not model.has_tokenizer:
        return "Type token ids, for example 5 17 2", "focus_text"
    if "picture" in model.reads:
        return "Type a text, or open a picture", "open_picture"
    return ("Type a source and a target text" if "target" in model.reads else "Type a text"), "focus_text"


def _no_input(model: OpenedModel) -> str:
    return (
        f"{model.info.name} reads vectors, or files in a way that is not known here (its card says more): this window "
        "has no input for it. Run it from Python (open_checkpoint and run_trace of core_model)."
    )


def picture_first(state: AppState) -> Guidance:
    """Give a model of pictures one."""
    model = state.current_model
    if model is not None and "picture" not in model.reads:
        return f"{model.info.name} reads no pictures. With one that does, this is where each query looks.", ""
    if state.inputs.picture is not None:
        return "The attention on screen is not over the picture: choose a site that reads it.", ""
    return "Open a picture to see where in it each query looks.", "open_picture" if model else "open_folder"


def model_first(state: AppState) -> Guidance:
    """Open something: the panel needs no text."""
    return "Open a model to see how it knows the order of its tokens.", "open_folder"


def open_first(state: AppState) -> Guidance:
    """Open something, whether it is a model or not."""
    return "Open a checkpoint to see what it stores.", "open_folder"


def no_guidance(state: AppState) -> Guidance:
    """For panels beside one that guides."""
    return "", ""


def obstacle(state: AppState) -> Problem | None:
    """Why the model that is open can answer nothing, known before anything is asked."""
    model = state.current_model
    if model is None or model.info.refusal is None:
        return None
    remedy = next((_GIVING[fact] for fact in model.info.needs if fact in _GIVING), "open_folder")
    return Problem(what=f"{model.info.name} has no attention to show", message=model.info.refusal, remedy=remedy)
