"""attention: one head's attention over what it is given, as a figure (SVG, PDF, PNG) or as numbers (CSV, NPZ)."""

from __future__ import annotations

import argparse
from collections.abc import Sized
from pathlib import Path
from typing import get_args

from core_model.cancel import CancelToken
from core_model.errors import TraceError
from explorer.figures.files import DATA_FORMATS, format_of
from explorer.figures.queries import TableQuery
from explorer.figures.spec import FigureOptions, FigureSpec, Provenance
from explorer.state.app_state import AppState, Display, ModelInput, OpenedModel, ScaleName
from explorer.state.queries import MatrixQuery, OpenQuery, TraceQuery
from explorer.state.source import Source
from explorer.verbs.giving import add_input, given, require_readable
from explorer.verbs.progress import ProgressLine
from explorer.verbs.source import add_path, assumed
from explorer.viewmodels.attention import matrix_picture
from explorer.viewmodels.records import COLORMAPS, Span
from explorer.workers.answers import ANSWERS
from explorer.workers.engine import Engine

MOST_CELLS = 2048
"""A figure shows up to this many rows and columns cell by cell, longer ones pooled, and says so."""

_EPILOG = """\
The ending of --out chooses: .svg .pdf .png draw a figure of exact width, .csv .npz write the exact weights.
Rows are queries, columns are keys. In a CSV masked cells are empty; an NPZ holds attention and masked,
query_tokens and key_tokens, and where they come from (model, layer, head, text, file, ...).
A model without a tokenizer reads token ids: --text "5 17 2".

examples:
  transformer-explorer attention ./gpt2 --text "The cat sat on the mat" --layer 3 --head 5 --out figure.pdf
  transformer-explorer attention ./bert --text "A first text." --pair "A second." --layer 0 --head 1 --out weights.csv
  transformer-explorer attention ./opus-mt --text "Good morning" --target "Guten Morgen" --site decoder.cross \\
      --layer 5 --head 0 --out cross.svg --width-mm 114 --scale row_max
  transformer-explorer attention ./vit --picture cat.jpg --layer 11 --head 0 --out weights.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = FigureOptions()
    parser.usage = "%(prog)s PATH --text TEXT|--picture FILE|--sound FILE --layer L --head H --out FILE [options]"
    parser.description = "Write the attention of one head over a text, a picture or a sound."
    parser.epilog = _EPILOG
    add_path(parser)
    add_input(parser.add_argument_group("what the model reads"))
    place = parser.add_argument_group("which attention")
    place.add_argument(
        "--site", help="encoder.self, decoder.self or decoder.cross; default: the first that reads what is given"
    )
    place.add_argument("--layer", type=int, required=True, metavar="L", help="counted from 0")
    place.add_argument("--head", type=int, required=True, metavar="H", help="counted from 0")
    place.add_argument("--rows", type=_span, metavar="A:B", help="queries from A up to, not with, B; default: all")
    place.add_argument("--cols", type=_span, metavar="A:B", help="keys from A up to, not with, B; default: all")
    look = parser.add_argument_group("how the figure looks")
    look.add_argument(
        "--width-mm", type=float, default=defaults.width_mm, metavar="MM",
        help="width; journals: 85 one column, 114, 174 two columns (default: %(default)g)",
    )  # fmt: skip
    look.add_argument("--dpi", type=int, default=defaults.dpi, help="pixels an inch of a PNG (default: %(default)s)")
    look.add_argument("--font-size", type=float, default=defaults.font_size, metavar="PT", help="default: %(default)g")
    look.add_argument("--colormap", choices=COLORMAPS[:4], default="viridis", help="default: %(default)s")
    look.add_argument("--scale", choices=get_args(ScaleName), default="linear", help="default: %(default)s")
    look.add_argument("--no-labels", action="store_true", help="indices at the axes instead of tokens")
    look.add_argument("--no-caption", action="store_true", help="no line that names model, layer, head and scale")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")


def _span(text: str) -> Span:
    start, colon, stop = text.partition(":")
    if not (colon and start.isdigit() and stop.isdigit() and int(start) < int(stop)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range like 0:40, its end above its start")
    return int(start), int(stop)


def run(arguments: argparse.Namespace) -> int:
    format = format_of(arguments.out)
    options = FigureOptions(
        width_mm=arguments.width_mm,
        dpi=arguments.dpi,
        font_size=arguments.font_size,
        labels=not arguments.no_labels,
        caption=not arguments.no_caption,
    )
    inputs = given(arguments)
    trace = TraceQuery(source=Source(path=arguments.path, assume=assumed(arguments)), inputs=inputs)
    with ProgressLine("attention") as line:
        engine = Engine(ANSWERS)
        try:
            opened = engine.answer(OpenQuery(source=trace.source), CancelToken(), line.update)
            source = _provenance(engine, opened, arguments, inputs, line)
            if format in DATA_FORMATS:
                query = TableQuery(
                    trace=trace, provenance=source, rows=arguments.rows, cols=arguments.cols, path=arguments.out
                )
                engine.answer(query, CancelToken(), line.update)
            else:
                _write_figure(engine, trace, source, options, arguments, line)
        finally:
            engine.close()
    print(f"{arguments.out}: {source.site_label}, layer {source.layer}, head {source.head}")
    return 0


def _provenance(
    engine: Engine, opened: OpenedModel, arguments: argparse.Namespace, inputs: ModelInput, line: ProgressLine
) -> Provenance:
    """Where the numbers will come from, having said what was done to what is read; TraceError where the model offers
    no attention or not so much of it, InputError where it reads something else."""
    info = opened.info
    if not info.sites:
        raise TraceError(info.refusal or f"{info.name} has no attention that can be computed")
    require_readable(opened, inputs)
    tokens = engine.tokens(opened.source, inputs)
    for note in tokens.notes:
        line.note(note)
    site = arguments.site or opened.first_site(tokens)
    if opened.site(site) and tokens.has(site):  # else the trace says what is wrong
        _require_within("rows", arguments.rows, tokens.queries(site))
        _require_within("cols", arguments.cols, tokens.keys(site))
    return Provenance.of(info, inputs, site=site, layer=arguments.layer, head=arguments.head)


def _require_within(option: str, span: Span | None, there: Sized) -> None:
    """TraceError for a range that goes beyond what there is."""
    if span is not None and span[1] > len(there):
        told = f"--{option} is {span[0]}:{span[1]}, and there are {len(there)} {option}"
        raise TraceError(f"{told}: give a range within 0:{len(there)}")


def _write_figure(
    engine: Engine,
    trace: TraceQuery,
    source: Provenance,
    options: FigureOptions,
    arguments: argparse.Namespace,
    line: ProgressLine,
) -> None:
    from explorer.figures.render import save_figure, unprintable

    query = MatrixQuery(
        trace=trace,
        site=source.site,
        layer=source.layer,
        head=source.head,
        rows=arguments.rows,
        cols=arguments.cols,
        size=(MOST_CELLS, MOST_CELLS),
    )
    answer = engine.answer(query, CancelToken(), line.update)
    display = Display(scale=arguments.scale, colormap=arguments.colormap)
    spec = FigureSpec(picture=matrix_picture(answer, AppState(display=display)), provenance=source, options=options)
    save_figure(spec, arguments.out, format_of(arguments.out))
    if not answer.view.exact:
        line.note(f"the matrix is larger than {MOST_CELLS} x {MOST_CELLS}: {spec.picture.note.partition(';')[0]}")
    if missing := unprintable(spec):
        line.note(f"no installed font has {' '.join(missing)}: the figure spells the codes of these characters")
