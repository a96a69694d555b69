"""The panels there are.

Adding one: its query in state.queries, its answer in workers.answers, its view in viewmodels, its file beside this one,
and a row here.
"""

from __future__ import annotations

from explorer.panels.panel import PanelSpec

PANELS: tuple[PanelSpec, ...] = ()
