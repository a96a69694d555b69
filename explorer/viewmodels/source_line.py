"""One line that names the source of the picture on screen."""

from __future__ import annotations

from explorer.state.app_state import AppState
from explorer.viewmodels.painted import is_dense, painted_note
from explorer.viewmodels.records import HeatmapPicture
from explorer.viewmodels.scales import SCALE_LABELS
from explorer.viewmodels.sites import site_name
from explorer.viewmodels.sizes import shortened


def source_line(state: AppState, picture: object) -> str:
    """Model, and of a matrix its site, layer and head, scale, and what a pixel is; while training, the run.

    Empty while there is neither.
    """
    if state.layout == "train":
        return state.training.run.name if state.training.run else ""
    model, chosen = state.current_model, state.selection
    if model is None:
        return str(state.source.path) if state.source else ""
    if not isinstance(picture, HeatmapPicture) or chosen.site is None:
        return model.info.name
    low, high = picture.levels
    port = state.viewport
    crowded = port is not None and is_dense(picture, port.rows, port.cols, port.size)
    ends = "" if state.display.scale == "log" else f" {low:g} to {high:.3g}"
    parts = (
        shortened(model.info.name),
        f"{site_name(chosen.site).lower()}, layer {chosen.layer} head {chosen.head}",
        model.normalizers,
        f"{SCALE_LABELS[state.display.scale].title.lower()}{ends}",
        painted_note(picture.note, is_dense=crowded).partition(";")[0],
    )
    return " · ".join(parts)
