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
from explorer.panels.panel import PanelSpec, as_it_is
from explorer.panels.picture import PicturePanel
from explorer.panels.positions import PositionsPanel
from explorer.panels.progress import ProgressPanel
from explorer.panels.schedule import SchedulePanel
from explorer.panels.spectrum import SpectrumPanel
from explorer.panels.tensor import TensorPanel
from explorer.panels.tensors import TensorsPanel
from explorer.panels.tokens import TokensPanel
from explorer.panels.train import TrainPanel
from explorer.state.queries import (
    heads_query,
    inspector_query,
    matrix_query,
    matrix_tile_query,
    model_card_query,
    picture_query,
    positions_query,
    training_options_query,
)
from explorer.state.tensor_queries import spectrum_query, tensor_list_query, tensor_part_query, tensor_query
from explorer.viewmodels.attention import matrix_picture, matrix_tile
from explorer.viewmodels.guidance import first_steps, model_first, open_first, picture_first
from explorer.viewmodels.heads import heads_picture
from explorer.viewmodels.inspector import inspector_sheet
from explorer.viewmodels.model_card import model_card
from explorer.viewmodels.patches import patch_picture
from explorer.viewmodels.positions import positions_look, positions_picture
from explorer.viewmodels.tensor_list import tensor_table
from explorer.viewmodels.tensor_picture import spectrum_picture, tensor_part, tensor_picture

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
        guidance=first_steps,
    ),
    PanelSpec(
        key="positions",
        title="Positions",
        icon="positions",
        area="centre",
        layouts=("explore", "learn"),
        factory=PositionsPanel,
        query=positions_query,
        view=positions_picture,
        look=positions_look,
        tooltip="How the open model knows the order of its tokens.",
        guidance=model_first,
    ),
    PanelSpec(
        key="tensors",
        title="Tensors",
        icon="table",
        area="centre",
        layouts=("explore",),
        factory=TensorsPanel,
        query=tensor_list_query,
        view=tensor_table,
        tooltip="Everything the checkpoint stores, and the weights of each head.",
        guidance=open_first,
    ),
    PanelSpec(
        key="tensor",
        title="Tensor",
        icon="table",
        area="centre",
        layouts=(),
        inside="tensors",
        factory=TensorPanel,
        query=tensor_query,
        view=tensor_picture,
        detail=tensor_part_query,
        detail_view=tensor_part,
        tooltip="The numbers of the tensor chosen in the list.",
    ),
    PanelSpec(
        key="spectrum",
        title="Singular values",
        icon="curve",
        area="centre",
        layouts=(),
        inside="tensor",
        factory=SpectrumPanel,
        query=spectrum_query,
        view=spectrum_picture,
        tooltip="The singular values of the tensor chosen in the list.",
    ),
    PanelSpec(
        key="progress",
        title="Progress",
        icon="curve",
        area="centre",
        layouts=("train",),
        factory=ProgressPanel,
        tooltip="Loss, learning rate, gradients, speed and attention of the training that runs.",
    ),
    PanelSpec(
        key="schedule",
        title="Schedule",
        icon="schedule",
        area="centre",
        layouts=("train", "learn"),
        factory=SchedulePanel,
        tooltip="The learning rate of every update, for each schedule.",
    ),
    PanelSpec(
        key="train",
        title="Train",
        icon="train",
        area="left",
        layouts=("train",),
        factory=TrainPanel,
        query=training_options_query,
        view=as_it_is,
        shortcut="Ctrl+6",
        tooltip="What to train, and how.",
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
        tooltip="The numbers of the locked cell, or of the one under the mouse.",
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
    ),
    PanelSpec(
        key="picture",
        title="Picture",
        icon="picture",
        area="left",
        layouts=(),
        factory=PicturePanel,
        query=picture_query,
        view=patch_picture,
        shortcut="Ctrl+7",
        tooltip="Where in the picture a query looks.",
        guidance=picture_first,
    ),
    PanelSpec(
        key="tokens",
        title="Tokens",
        icon="tokens",
        area="bottom",
        layouts=("explore",),
        factory=TokensPanel,
        shortcut="Ctrl+4",
        tooltip="What the model reads, token by token, patch by patch or frame by frame.",
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
