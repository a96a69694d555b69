"""Learn: the parts of the recipe, one by one."""

from __future__ import annotations

from explorer.actions.command import Command


def _concept(key: str, title: str, tooltip: str) -> Command:
    return Command(
        key=f"learn_{key}",
        title=title,
        menu="Learn",
        icon=key,
        tooltip=tooltip,
        run=lambda desk: desk.window.show_concept(key),
    )


LEARN_COMMANDS = (
    _concept("positions", "Positional encoding", "See how the open model knows the order of its tokens."),
    _concept("schedule", "Learning-rate schedule", "See the learning rate of every update, for each schedule."),
)
