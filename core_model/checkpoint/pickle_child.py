"""The process that reads a pickle: it alone touches one, with bounds on what it may take, and imports nothing of ours.

Run as `python pickle_child.py PICKLE OUT BYTES`: writes the tensors of PICKLE to OUT as safetensors, or the reason why
not to its standard output, and ends with `UNREADABLE` or `UNWRITABLE`. torch's weights-only reader builds tensors and
plain containers and refuses all else; the bounds are for files that make it take memory without end.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_PARTS = ("state_dict", "model_state_dict", "model", "module", "net")
"""Where training scripts put the weights beside other things."""
_DEEPEST = 4
UNREADABLE, UNWRITABLE = 1, 2


class ReadingError(Exception):
    """Why a pickle gives no weights, as the end of a sentence that begins with the file's name."""


class WritingError(Exception):
    """Why the weights cannot be written, in the words of safetensors."""


def main(pickle: Path, out: Path, n_bytes: int) -> None:
    """Read the one and write the other; ReadingError says what is wrong with it, WritingError with the disk."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    _bound_memory(n_bytes)
    try:
        found = torch.load(pickle, map_location="cpu", weights_only=True)
        tensors = {name: tensor.contiguous() for name, tensor in _tensors(_weights(found), "")}
        if tensors:
            save_file(tensors, out, metadata={"format": "pt", **_model_args(found)})
            return
    except SafetensorError as error:
        raise WritingError(str(error)) from error
    except Exception as error:  # the reader raises whatever a broken file makes it stumble over
        raise ReadingError(_reason(error)) from error
    raise ReadingError("holds no tensors: open the file with the model's weights")


def _bound_memory(n_bytes: int) -> None:
    """Refuse this process more memory than it has now and so many bytes; where the system knows no such bound, none."""
    try:
        import resource
    except ImportError:  # Windows: the bound on time is left
        return
    status = Path("/proc/self/statm")
    taken = int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes, taken + n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _reason(error: Exception) -> str:
    """What the reader stumbled over, without its advice on how to run the code all the same."""
    text = str(error)
    if named := re.search(r"(?:GLOBAL|class|global:) (?!GLOBAL)([\w.]+)", text):
        return f"asks to run {named[1]}, which no weights need: do not trust it, or ask for safetensors"
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "not enough memory" in text:
        return "asks for more memory than weights of its size need: do not trust it"
    return f"cannot be read ({type(error).__name__}): download it again, or ask for safetensors"


def _weights(found: Any) -> Any:
    """The part of what a training script saved that holds the weights."""
    for key in _PARTS:
        part = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(part, Mapping):
            return _weights(part)
    return found


def _model_args(found: Any) -> dict[str, str]:
    """What nanoGPT's train.py saves beside the weights: the number of heads, which they do not tell, among others."""
    args = found.get("model_args") if isinstance(found, Mapping) else None
    if not isinstance(args, Mapping):
        return {}
    plain = {key: value for key, value in args.items() if isinstance(key, str) and isinstance(value, int | float | str)}
    return {"model_args": json.dumps(plain)}


def _tensors(found: Any, prefix: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every tensor by name, those inside nested dicts by dotted ones; copies where two share memory."""
    import torch

    if not isinstance(found, Mapping) or depth > _DEEPEST:
        return
    taken: set[int] = set()
    for key, value in found.items():
        name = f"{prefix}{key}"
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            is_shared = value.numel() > 0 and value.untyped_storage().data_ptr() in taken
            taken.add(value.untyped_storage().data_ptr())
            yield name, value.detach().clone() if is_shared else value.detach()
        else:
            yield from _tensors(value, f"{name}.", depth + 1)


def _end_with_parent() -> None:
    """End this process when the one that started it has: it alone bounds the time, and wants the answer."""
    while os.read(0, 1):  # the other end of the pipe is closed by the system, whatever became of its process
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    except (ReadingError, WritingError) as error:
        sys.stdout.buffer.write(str(error).encode())
        sys.exit(UNREADABLE if isinstance(error, ReadingError) else UNWRITABLE)
