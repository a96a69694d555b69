"""What a file that is not safetensors is, told by its first bytes, and what its owner can do about it.

Nothing is unpacked or executed: only the first bytes are looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

N_FIRST_BYTES = 512
_FETCH_AGAIN = "download the file again"


@dataclass(frozen=True, kw_only=True)
class OtherFormat:
    """A format other than safetensors: what it is called and the next step for someone who wants to see the model."""

    what: str
    next_step: str
    instead_of: str = "a safetensors file"
    is_pickle: bool = False

    @property
    def sentence(self) -> str:
        """The two as the end of a sentence that begins with the file's name."""
        return f"{self.what}, not {self.instead_of}: {self.next_step}"


_CONVERT_PICKLE = "pickles can run code and are never opened as they are; convert it, which reads the weights alone"
_PYTORCH_PICKLE = OtherFormat(what="a PyTorch file (a zip with a pickle)", next_step=_CONVERT_PICKLE, is_pickle=True)
_NUMPY_ARCHIVE = OtherFormat(what="a numpy archive (.npz)", next_step="save its arrays as safetensors")
_ZIP = OtherFormat(what="a zip archive", next_step="unpack it and open the .safetensors file inside")
_LFS_POINTER = OtherFormat(
    what="a Git LFS pointer", instead_of="the weights", next_step="fetch them with `git lfs pull` in that folder"
)
_TEXT = OtherFormat(what="a text", next_step=_FETCH_AGAIN)
_ZEROS = OtherFormat(what="all zeros, as an interrupted download leaves it", next_step=_FETCH_AGAIN)

_BY_FIRST_BYTES: tuple[tuple[re.Pattern[bytes], OtherFormat], ...] = tuple(
    (re.compile(pattern, re.DOTALL | re.IGNORECASE), known)
    for pattern, known in (
        (rb"version https://git-lfs", _LFS_POINTER),
        (rb"PK\x03\x04.*(data\.pkl|archive/)", _PYTORCH_PICKLE),
        (rb"PK\x03\x04.*\.npy", _NUMPY_ARCHIVE),
        (rb"PK\x03\x04", _ZIP),
        (
            rb"\x80[\x02-\x05]",
            OtherFormat(what="a Python pickle (an old PyTorch file)", next_step=_CONVERT_PICKLE, is_pickle=True),
        ),
        (
            rb"GGUF|ggml|lmgg|tjgg",
            OtherFormat(
                what="a GGUF file (llama.cpp)", next_step="open the model's original safetensors folder instead"
            ),
        ),
        (
            rb"\x89HDF\r\n\x1a\n",
            OtherFormat(what="an HDF5 file (Keras, TensorFlow)", next_step="export the model as safetensors"),
        ),
        (rb"\x93NUMPY", OtherFormat(what="a numpy array (.npy)", next_step="save it as safetensors")),
        (
            rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|\xfd7zXZ\x00|BZh[1-9]",
            OtherFormat(what="compressed (gzip, zstd, xz or bzip2)", next_step="decompress it first"),
        ),
        (
            rb"\x00\x05\x16\x07",
            OtherFormat(what="a macOS AppleDouble file", next_step="open the file whose name has no ._ in front"),
        ),
        (rb".{257}ustar", OtherFormat(what="a tar archive", next_step="unpack it and open the files inside")),
        (
            rb"\s*<(!doctype|html|\?xml)",
            OtherFormat(what="a web page (HTML)", next_step="the download did not get the file; " + _FETCH_AGAIN),
        ),
        (
            rb"\x08[\x01-\x20]\x12",
            OtherFormat(what="an ONNX model", next_step="open the safetensors folder it was exported from"),
        ),
        (
            rb"\s*[{\[]",
            OtherFormat(
                what="a JSON text, perhaps a server's error message",
                next_step="read it in an editor, then " + _FETCH_AGAIN,
            ),
        ),
    )
)


def recognise(first_bytes: bytes) -> OtherFormat | None:
    """The other format that begins with these bytes; None when they are nothing known."""
    for pattern, known in _BY_FIRST_BYTES:
        if pattern.match(first_bytes):
            return known
    if first_bytes and not first_bytes.strip(b"\x00"):
        return _ZEROS
    if first_bytes and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in first_bytes):
        return _TEXT
    return None


def is_lfs_pointer(first_bytes: bytes) -> bool:
    """Whether these are the first bytes of a Git LFS pointer."""
    return recognise(first_bytes) is _LFS_POINTER
