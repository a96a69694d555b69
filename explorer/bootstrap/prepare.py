"""Which interpreter a start goes on in: the running one, or that of `.venv`, filled first when it lacks something."""

from __future__ import annotations

import sys
from pathlib import Path

from explorer.bootstrap.environment import interpreter, read_stamp, site_packages
from explorer.bootstrap.failures import SetupError, explain_os_error
from explorer.bootstrap.requirements import PYTHON, is_satisfied, read_requirements


def prepare(root: Path, *, with_tests: bool) -> Path | None:
    """The interpreter that has the dependencies: `.venv`'s, filled first if need be, or None for the running one.

    Raises SetupError.
    """
    environment = root / ".venv"
    wanted = read_requirements(root, with_tests=with_tests)
    inside = Path(sys.prefix).resolve() == environment.resolve()

    def is_ready() -> bool:
        """Whether `.venv` holds what is wanted. Its stamp decides; one made by hand has none and is looked into."""
        stamp = read_stamp(environment)
        if not interpreter(environment).exists():
            return False
        if stamp is None:
            return is_satisfied(wanted.lines, sys.path if inside else site_packages(environment))
        if inside and stamp.python != PYTHON:  # the system's Python was upgraded, which leaves an empty shell
            return False
        return wanted.digest in stamp.complete

    if not inside and is_satisfied(wanted.lines, sys.path):
        return None
    if not is_ready():
        # Imported here because a start that finds everything in place needs neither.
        from explorer.bootstrap.installation import install
        from explorer.bootstrap.lock import one_at_a_time

        try:
            with one_at_a_time(root):
                if not is_ready():  # the start that held the lock before may have done the work
                    install(environment, wanted, root)
        except OSError as error:
            raise SetupError(explain_os_error(error, environment)) from error
    elif inside:
        return None
    return interpreter(environment)
