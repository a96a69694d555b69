"""What comes back from a worker."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.state.queries import AnyQuery


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why there is no answer: what failed, and how. Text only, so that no frame of the worker stays alive with it.

    Not `is_bug`: something the person can act on, and `message` says what. `is_cancelled`: the person stopped it.
    """

    what: str
    message: str
    details: str = ""
    remedy: str = ""
    """Key of the command that may help."""
    is_bug: bool = False
    is_cancelled: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of one job: the query it answers and its result, or the Problem that stood in the way."""

    slot: str
    query: AnyQuery
    result: object
