"""Opening the picture or the sound a person names."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

from core_model.errors import InputError
from core_model.wording import file_name


def open_file(path: Path) -> BinaryIO:
    """A regular file that holds something; InputError says what is there instead."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{file_name(path)} is not a file: name the file itself")
        if not status.st_size:
            raise InputError(f"{file_name(path)} is empty (0 bytes): save or download it again")
        return path.open("rb")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{file_name(path)} cannot be read ({reason}): check the path") from error
