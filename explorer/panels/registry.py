"""The panels there are.

Adding one: its query in state.queries, its answer in workers.answers, its view in viewmodels, its file beside this one,
and a row here.
"""

from __future__ import annotations

from explorer.panels.heads import HeadsPanel
from explorer.panels.inspector import InspectorPanel
from explorer.panels.matrix import MatrixPanel
from explorer.panels.messages import MessagesPanel
from explorer.panels.model_card import ModelCardPanel
from explorer.panels.panel import PanelSpec
from explorer.panels.tokens import TokensPanel
from explorer.state.queries import heads_query, inspector_query, matrix_query, matrix_tile_query, model_card_query
from explorer.viewmodels.attention import matrix_picture, matrix_tile
from explorer.viewmodels.heads import heads_picture
from explorer.viewmodels.inspector import inspector_sheet
from explorer.viewmodels.model_card import model_card

PANELS: tuple[PanelSpec, ...] = (
    PanelSpec(
        key="heads",
        title="Heads",
        icon="grid",
        area="left",
        layouts=("explore",),
        factory=HeadsPanel,
        query=heads_query,
        view=heads_picture,
        shortcut="Ctrl+1",
        tooltip="All heads of the site as small pictures.",
        empty=("Every head appears here as a small picture.", ""),
    ),
    PanelSpec(
        key="matrix",
        title="Matrix",
        icon="matrix",
        area="centre",
        layouts=("explore",),
        factory=MatrixPanel,
        query=matrix_query,
        view=matrix_picture,
        detail=matrix_tile_query,
        detail_view=matrix_tile,
        tooltip="The attention of one head, cell by cell.",
        empty=("Open a model and type a text to see what each head attends to.", "open_folder"),
    ),
    PanelSpec(
        key="inspector",
        title="Inspector",
        icon="inspect",
        area="right",
        layouts=("explore",),
        factory=InspectorPanel,
        query=inspector_query,
        view=inspector_sheet,
        shortcut="Ctrl+2",
        tooltip="The numbers of the cell under the mouse, or of the locked one.",
        empty=("Point at a cell to read its numbers.", ""),
    ),
    PanelSpec(
        key="model_card",
        title="Model card",
        icon="model",
        area="right",
        layouts=("explore",),
        factory=ModelCardPanel,
        query=model_card_query,
        view=model_card,
        shortcut="Ctrl+3",
        tooltip="What the checkpoint is: stated, inferred or unknown.",
        empty=("What is known of a model appears here.", ""),
    ),
    PanelSpec(
        key="tokens",
        title="Tokens",
        icon="tokens",
        area="bottom",
        layouts=("explore",),
        factory=TokensPanel,
        shortcut="Ctrl+4",
        tooltip="The text as the model reads it.",
    ),
    PanelSpec(
        key="messages",
        title="Messages",
        icon="info",
        area="right",
        layouts=(),
        beside="model_card",
        factory=MessagesPanel,
        shortcut="Ctrl+5",
        tooltip="What the program has said since it started.",
    ),
)


def panel_spec(key: str) -> PanelSpec:
    """The row of that key."""
    return next(spec for spec in PANELS if spec.key == key)
