"""A running training as curves, as the attention on the watched example, and as one line of words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from core_model.training.events import ProbeAttention
from core_model.training.settings import TrainingSettings
from core_model.training.tasks import TASKS
from explorer.state.app_state import Display
from explorer.state.training import Numbers, TrainingFacts, TrainingSnapshot, WatchedHead
from explorer.viewmodels.records import CurvePicture, HeatmapPicture, MosaicPicture, Series
from explorer.viewmodels.scales import scaled, scaled_thumbnails
from explorer.viewmodels.schedule import sampled_updates
from explorer.viewmodels.sites import site_name

_STEP: Final = "step"
_PHASES: Final = {
    "idle": "Nothing is training yet.",
    "starting": "Starting",
    "running": "Running",
    "paused": "Paused",
    "stopping": "Stopping and saving",
    "finished": "Finished",
    "failed": "Failed",
}


def loss_picture(snapshot: TrainingSnapshot) -> CurvePicture:
    """The loss of every batch, before its update."""
    return _curve(snapshot, "Training loss", "loss", snapshot.loss, y_title="loss", y_unit="nat")


def accuracy_picture(snapshot: TrainingSnapshot) -> CurvePicture:
    """Held-out accuracy, measured now and then."""
    series = Series(name="accuracy", x=snapshot.accuracy_steps, y=snapshot.accuracy, role="series_3")
    return CurvePicture(series=(series,), title="Held-out accuracy", x_title=_STEP, y_title="accuracy")


def rate_picture(snapshot: TrainingSnapshot) -> CurvePicture:
    """The learning rate so far, on the schedule of the whole run."""
    step = snapshot.last.step
    updates, ahead = _ahead(snapshot.settings, step)
    return CurvePicture(
        series=(
            Series(name="schedule", x=updates, y=ahead, role="series_8", width=1.0, dashed=True),
            Series(name="used", x=snapshot.steps, y=snapshot.learning_rate, role="series_2"),
        ),
        title="Learning rate",
        x_title=_STEP,
        y_title="rate",
        marker=float(step),
    )


@lru_cache(maxsize=1)
def _ahead(settings: TrainingSettings, step: int) -> tuple[Numbers, Numbers]:
    """The schedule of a whole run: updates, this one among them, and their rates. A paused run draws the same one."""
    updates = sampled_updates(settings.steps, step)
    return updates, np.array([settings.learning_rate(int(update)) for update in updates])


def norm_picture(snapshot: TrainingSnapshot) -> CurvePicture:
    """The gradient norm before clipping; a gap where float16 gradients overflowed and the update was skipped."""
    return _curve(snapshot, "Gradient norm", "before clipping", snapshot.grad_norm, y_title="norm", role="series_4")


def scale_picture(snapshot: TrainingSnapshot) -> CurvePicture | None:
    """The loss scale of float16; None where nothing is scaled."""
    if np.isnan(snapshot.loss_scale).all():
        return None
    return _curve(snapshot, "Loss scale", "scale", snapshot.loss_scale, y_title="factor", role="series_5", log_y=True)


def speed_picture(snapshot: TrainingSnapshot) -> CurvePicture:
    """Tokens a second of every update, without padding and pauses."""
    speed = snapshot.tokens_per_second
    return _curve(snapshot, "Tokens per second", "speed", speed, y_title="tokens/s", role="series_6")


CURVES: Final[tuple[Callable[[TrainingSnapshot], CurvePicture | None], ...]] = (
    loss_picture,
    accuracy_picture,
    rate_picture,
    norm_picture,
    speed_picture,
    scale_picture,
)
"""The curves of a training, in reading order."""


def _curve(
    snapshot: TrainingSnapshot,
    title: str,
    name: str,
    values: Numbers,
    *,
    y_title: str,
    y_unit: str = "",
    role: str = "series_1",
    log_y: bool = False,
) -> CurvePicture:
    finite = np.where(np.isfinite(values), values, np.nan)
    return CurvePicture(
        series=(Series(name=name, x=snapshot.steps, y=finite, role=role),),
        title=title,
        x_title=_STEP,
        y_title=y_title,
        y_unit=y_unit,
        log_y=log_y,
    )


def settled(watched: WatchedHead, probe: ProbeAttention) -> WatchedHead:
    """The watched head, or the nearest that the model has; without a choice, the last site: it reads what was read."""
    name = watched.site or ""
    if name not in probe.sites:
        name = list(probe.sites)[-1]
    n_layers, n_heads = probe.sites[name].weights.shape[:2]
    return WatchedHead(site=name, layer=min(watched.layer, n_layers - 1), head=min(watched.head, n_heads - 1))


def stepped(watched: WatchedHead, probe: ProbeAttention, d_layer: int, d_head: int) -> WatchedHead:
    """The head so many layers and heads further, stopping at the ends."""
    now = settled(watched, probe)
    further = WatchedHead(site=now.site, layer=max(0, now.layer + d_layer), head=max(0, now.head + d_head))
    return settled(further, probe)


def probe_picture(probe: ProbeAttention, watched: WatchedHead, display: Display) -> HeatmapPicture:
    """One head's attention on the watched example, in the scale and colours of all matrices."""
    watched = settled(watched, probe)
    assert watched.site is not None
    site = probe.sites[watched.site]
    weights = site.weights[watched.layer, watched.head]
    drawn = scaled(weights, weights.max(axis=1), display.scale)
    is_cross = watched.site == "decoder.cross"
    return HeatmapPicture(
        values=drawn.values,
        shape=weights.shape,
        rows=(0, weights.shape[0]),
        cols=(0, weights.shape[1]),
        levels=drawn.levels,
        ticks=drawn.ticks,
        title=f"{site_name(watched.site)}, layer {watched.layer} head {watched.head}",
        scale_name=drawn.name,
        note=f"watched example, after step {probe.step}",
        colormap=display.colormap,
        masked=site.masked if site.masked.any() else None,
        missing=drawn.left_out,
        missing_name="left out",
        weights=weights,
        row_labels=site.query_texts,
        col_labels=site.key_texts,
        row_title="query: token the decoder reads" if is_cross else "query (row)",
        col_title="key: token the encoder reads" if is_cross else "key (column)",
        identity=("probe", watched, probe.step, display.scale),
    )


def probe_heads_picture(probe: ProbeAttention, watched: WatchedHead, display: Display) -> MosaicPicture:
    """Every head of the watched site, small, in the scale of the matrix."""
    chosen = settled(watched, probe).site
    assert chosen is not None
    site = probe.sites[chosen]
    edge = max(site.weights.shape[2:])
    _, _, n_rows, n_cols = site.weights.shape
    shown = np.where(site.masked, np.nan, site.weights)
    square = shown[:, :, [i * n_rows // edge for i in range(edge)]][..., [i * n_cols // edge for i in range(edge)]]
    values, levels = scaled_thumbnails(square.astype(np.float32), display.scale)
    return MosaicPicture(
        thumbnails=values,
        levels=levels,
        title=f"All heads, {site_name(chosen).lower()}",
        colormap=display.colormap,
    )


@dataclass(frozen=True, kw_only=True)
class TrainingLine:
    """How far it is: words, the fraction done, and whether something is wrong."""

    text: str
    fraction: float
    is_problem: bool = False


def training_line(facts: TrainingFacts, snapshot: TrainingSnapshot | None) -> TrainingLine:
    """ "Running: reverse, step 340 of 2000, 12.3 s"."""
    if facts.phase == "failed":
        return TrainingLine(text=facts.problem, fraction=0.0, is_problem=True)
    if facts.settings is None:
        return TrainingLine(text=_PHASES[facts.phase], fraction=0.0)
    is_cut_short = facts.phase == "finished" and snapshot is not None and snapshot.last.step < snapshot.last.n_steps
    phase = "Stopped" if is_cut_short else _PHASES[facts.phase]
    words = f"{phase}: {TASKS[facts.settings.task].label.lower()}"
    if snapshot is None:
        return TrainingLine(text=words, fraction=0.0)
    last = snapshot.last
    words += f", step {last.step} of {last.n_steps}, {_duration(last.seconds)}"
    if facts.n_threads is not None and facts.settings.device == "cpu":
        words += f", {facts.n_threads} thread{'' if facts.n_threads == 1 else 's'}"
    return TrainingLine(text=words, fraction=last.step / last.n_steps)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def saved_line(facts: TrainingFacts) -> str:
    """Where the run is kept and how much of it is there, or why the save due last failed."""
    if facts.run is None:
        return ""
    if facts.is_busy and facts.problem:
        return facts.problem
    if facts.saved_step is None:
        if facts.is_busy and facts.settings is not None:
            return f"First save at step {facts.settings.save_every}: {facts.run}"
        return f"Not saved yet: {facts.run}"
    return f"Saved to step {facts.saved_step}: {facts.run}"
