"""screenshot: the real window, drawn without a display, as a PNG."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from core_model.errors import CoreError
from explorer.figures.files import ExportError, whole_file
from explorer.samples import bundled_samples
from explorer.state.app_state import Cell, ColormapName, LayoutName, ModelInput, ScaleName, Selection
from explorer.state.moves import in_same_layout, lock_cell, open_source
from explorer.state.queries import matrix_query
from explorer.state.source import Assumed
from explorer.state.training_moves import set_draft, set_runs_folder, with_training
from explorer.verbs.giving import add_input, given, require_readable
from explorer.verbs.source import add_assumed, assumed

if TYPE_CHECKING:
    from explorer.app import Explorer
    from explorer.panels.panel import PanelSpec
    from explorer.state.app_state import Notice

BUG = 1
PROGRAM = "transformer-explorer"
ALIASES = {"attention": "matrix"}
_SETTLE_MS = 150
"""Plots gather what changes within a frame and ask for their exact part after it."""

_EPILOG = """\
Without --open the bundled sample is shown, over its own text and at its own head unless others are given.
Nothing is remembered: neither settings nor recent files change.

examples:
  transformer-explorer screenshot --open ./gpt2 --text "The cat sat" --panel attention --out window.png
  transformer-explorer screenshot --layout train --theme dark --size 1280x800 --scale 2 --out train.png
"""


class ScreenshotError(CoreError):
    """The window cannot be brought to show what was asked for."""


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What is opened, what it reads and where in it one looks."""

    path: Path
    inputs: ModelInput
    selection: Selection
    is_sample: bool

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> _Wanted:
        """What was asked for; without a checkpoint the bundled sample, as far as nothing else was."""
        site, layer, head = arguments.site, arguments.layer, arguments.head
        inputs = given(arguments)
        chosen = Selection(site=site, layer=layer or 0, head=head or 0)
        if arguments.path is not None:
            return cls(path=arguments.path, inputs=inputs, selection=chosen, is_sample=False)
        sample = bundled_samples()[0]
        if site is None and layer is None and head is None:
            chosen = Selection(site=sample.site, layer=sample.layer, head=sample.head)
        return cls(
            path=sample.path,
            inputs=sample.inputs if inputs == ModelInput() else inputs,
            selection=chosen,
            is_sample=True,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Draw the window into a PNG, without a display."
    parser.epilog = _EPILOG
    parser.usage = "%(prog)s --out FILE.png [options]"
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png", help="the file to write")
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--open", type=Path, dest="path", metavar="PATH", help="a checkpoint")
    add_assumed(shown)
    add_input(shown)
    shown.add_argument("--site", help="encoder.self, decoder.self or decoder.cross")
    shown.add_argument("--layer", type=int, metavar="L", help="counted from 0 (default: 0)")
    shown.add_argument("--head", type=int, metavar="H", help="counted from 0 (default: 0)")
    shown.add_argument("--cell", type=_cell, metavar="Q,K", help="the cell that is locked: query and key, from 0")
    shown.add_argument("--attention-scale", choices=get_args(ScaleName), default="linear", help="default: linear")
    shown.add_argument("--colormap", choices=get_args(ColormapName), default="viridis", help="default: viridis")
    shown.add_argument(
        "--train-steps", type=_steps, metavar="N", help="train the model of the form that long first; nothing is kept"
    )
    window = parser.add_argument_group("the window")
    window.add_argument("--panel", help=f"panel to bring to the front: {', '.join(_panels())}")
    window.add_argument("--layout", choices=get_args(LayoutName), help="default: one that has the panel")
    window.add_argument("--size", type=_size, default=(1600, 1000), metavar="WxH", help="default: 1600x1000")
    window.add_argument("--scale", type=float, default=1.0, metavar="S", help="pixels of the PNG to one of --size")
    window.add_argument("--theme", choices=("light", "dark"), default="light", help="default: light")
    window.add_argument("--patience", type=float, default=120.0, metavar="SECONDS", help="longest wait (default: 120)")


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and 0 < int(width) <= 16384 and 0 < int(height) <= 16384):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size like 1600x1000")
    return int(width), int(height)


def _cell(text: str) -> Cell:
    query, _, key = text.partition(",")
    if not (query.isdecimal() and key.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a cell like 5,3")
    return Cell(query=int(query), key=int(key))


def _steps(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of updates from 1 to 100000")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    if arguments.out.suffix.lower() != ".png":
        raise ExportError(f"{arguments.out.name!r} must end in .png")
    if not 0.5 <= arguments.scale <= 4:
        raise ExportError(f"The scale is {arguments.scale:g}: choose from 0.5 to 4.")
    if not 0 < arguments.patience < math.inf:
        raise ScreenshotError(f"The patience is {arguments.patience:g} s: choose more than 0.")
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # Ctrl-C ends it: as an exception it would be lost in one of Qt's slots
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QT_SCALE_FACTOR"] = f"{arguments.scale:g}"
    from explorer.app import build, make_application  # Qt, after the environment is set
    from explorer.collector import Collector
    from explorer.faults import FaultHooks
    from explorer.settings.schema import Settings

    spec = _panel(arguments.panel) if arguments.panel else None
    application = make_application(sys.argv[:1])
    settings = Settings(
        theme=arguments.theme,
        layout=arguments.layout or (spec.layouts[0] if spec and spec.layouts else "explore"),
        scale=arguments.attention_scale,
        colormap=arguments.colormap,
    )
    faults: list[Notice] = []
    hooks, collector = FaultHooks(faults.append), Collector()
    explorer = build(application, settings)
    try:
        content = _grab(explorer, arguments, spec)
        faults.extend(notice for notice in explorer.store.state.notices if notice.details)
    finally:
        explorer.close()
        collector.close()
        hooks.remove()
    for fault in faults:
        print(f"{PROGRAM}: {fault.text}\n{fault.details}", file=sys.stderr)
    with whole_file(arguments.out) as file:
        file.write(content)
    print(f"{arguments.out}: {arguments.size[0]} x {arguments.size[1]} at scale {arguments.scale:g}")
    return BUG if faults else 0


def _panel(name: str) -> PanelSpec:
    """The panel of that name. Raises ScreenshotError naming those there are."""
    panels = _panels()
    if name not in panels:
        raise ScreenshotError(f"There is no panel {name!r}: choose one of {', '.join(panels)}.")
    return panels[name]


def _panels() -> dict[str, PanelSpec]:
    """The panels that can be brought to the front, by every name they have here."""
    from explorer.panels.registry import PANELS

    panels = {spec.key: spec for spec in PANELS if not spec.inside}
    return {alias: panels[key] for alias, key in ALIASES.items()} | panels


def _grab(explorer: Explorer, arguments: argparse.Namespace, spec: PanelSpec | None) -> bytes:
    """The PNG of the window once everything in it is drawn."""
    window, wanted = explorer.window, _Wanted.of(arguments)
    window.resize(*arguments.size)
    window.show()
    width, height = window.width(), window.height()
    if (width, height) != arguments.size:
        raise ScreenshotError(
            "The window cannot be {}x{}: choose a --size of {}x{}.".format(*arguments.size, width, height)
        )
    if spec:
        window.show_panel(spec.key)
    _open(explorer, wanted, assumed(arguments))
    if arguments.train_steps:
        _train(explorer, arguments)
    for _ in range(2):  # what is drawn first asks for its exact part
        if not explorer.wait_until_idle(arguments.patience):
            raise ScreenshotError(f"The window was still busy after {arguments.patience:g} s: raise --patience.")
        if arguments.cell:
            explorer.store.settle(lock_cell(arguments.cell))
        _let_time_pass(_SETTLE_MS)
    _check_shown(explorer, wanted, arguments.cell)
    return _png(window)


def _open(explorer: Explorer, wanted: _Wanted, assume: Assumed) -> None:
    move = open_source(
        wanted.path, inputs=wanted.inputs, selection=wanted.selection, is_sample=wanted.is_sample, assume=assume
    )
    explorer.store.settle(in_same_layout(move))
    explorer.controller.start()


def _train(explorer: Explorer, arguments: argparse.Namespace) -> None:
    """Train to the end, into a folder that is gone afterwards. Raises ScreenshotError when that fails or takes long."""
    steps, end = arguments.train_steps, time.monotonic() + arguments.patience
    explorer.store.settle(set_draft(steps=steps, warmup=steps // 10))
    with tempfile.TemporaryDirectory() as folder:
        explorer.store.settle(set_runs_folder(Path(folder)))
        explorer.trainer.start()
        while explorer.trainer.is_busy or explorer.store.state.training.is_busy:
            if time.monotonic() > end:
                raise ScreenshotError(f"The training took longer than {arguments.patience:g} s: raise --patience.")
            _let_time_pass(_SETTLE_MS)
    if problem := explorer.store.state.training.problem:
        raise ScreenshotError(problem)
    explorer.store.settle(with_training(run=None, saved_step=None))  # there is no run to open


def _check_shown(explorer: Explorer, wanted: _Wanted, cell: Cell | None) -> None:
    """Raise ScreenshotError for what the person can mend: what stood in the way, or that something else is shown."""
    state, problem = explorer.store.state, explorer.controller.problem
    if problem:
        if problem.is_bug:
            return  # a notice has it, and the picture shows it
        raise ScreenshotError(f"{problem.what}: {problem.message}")
    if cell and state.locked != cell:
        raise ScreenshotError(f"There is no cell {cell.query},{cell.key} in the matrix shown.")
    if state.current_model is not None and wanted.inputs != ModelInput():
        require_readable(state.current_model, wanted.inputs)
    if state.inputs != wanted.inputs:
        raise ScreenshotError(f'{wanted.path} has no usable tokenizer: give --text token ids, like "5 17 2".')
    query = matrix_query(state)
    if query is None:
        return
    chosen = wanted.selection
    asked = (chosen.site or query.site, chosen.layer, chosen.head)
    if (query.site, query.layer, query.head) != asked:
        raise ScreenshotError(
            f"There is no {asked[0]} layer {asked[1]} head {asked[2]} in this model; "
            f"'inspect {wanted.path}' lists its attention sites."
        )


def _let_time_pass(milliseconds: int) -> None:
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def _png(window: object) -> bytes:
    from PySide6.QtCore import QBuffer, QIODevice
    from PySide6.QtWidgets import QWidget

    assert isinstance(window, QWidget)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    window.grab().save(buffer, "PNG")
    return bytes(buffer.data().data())
