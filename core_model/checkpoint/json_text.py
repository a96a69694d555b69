"""Reading a JSON object from a model folder: strict, bounded, and with an error that says what the file is instead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from core_model.checkpoint.files import open_regular
from core_model.checkpoint.recognise import N_FIRST_BYTES, is_lfs_pointer
from core_model.errors import CheckpointError
from core_model.json_size import MOST_VALUES, n_values
from core_model.wording import file_name, shown

MAX_JSON_BYTES = 32 * 1024 * 1024
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of at most 32 MB; CheckpointError names the file and what is wrong with it."""
    with open_regular(path) as file:
        text = file.read(MAX_JSON_BYTES + 1)
    if len(text) > MAX_JSON_BYTES:
        raise _refused(path, f"is larger than {MAX_JSON_BYTES} bytes: a JSON file of a model is smaller")
    if n_values(text) > MOST_VALUES:
        raise _refused(path, f"holds more than {MOST_VALUES} values: a JSON file of a model holds fewer")
    if not text.strip():
        raise _refused(path, "is empty: download it again")
    if is_lfs_pointer(text[:N_FIRST_BYTES]):
        raise _refused(path, "is a Git LFS pointer, not JSON: fetch the file with `git lfs pull` in that folder")
    if text.startswith(_UTF16_MARKS):
        raise _refused(path, "is encoded as UTF-16: JSON must be UTF-8; save it again as UTF-8")
    try:
        document = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise _refused(path, f"is not UTF-8 text (byte {error.start}): download it again") from error
    except RecursionError as error:
        raise _refused(path, "is JSON nested too deeply: download it again") from error
    except ValueError as error:
        raise _refused(path, f"is not valid JSON ({shown(error)}): correct it or download it again") from error
    if not isinstance(document, dict):
        raise _refused(path, "is JSON, but not an object: download it again")
    if _ESCAPED_SURROGATE.search(text) and not _is_unicode(document):
        raise _refused(path, "holds half a character (a lone surrogate), which is no text: correct it")
    return document


def _is_unicode(document: object) -> bool:
    """Whether all its texts are; JSON can spell the halves of a character one by one."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are Python's, not JSON's; no model setting may be either."""
    raise ValueError(f"{name} is not a number JSON allows")


def _refused(path: Path, reason: str) -> CheckpointError:
    """The error for this file, with its name in front."""
    return CheckpointError(f"{file_name(path)} {reason}", path=path)
