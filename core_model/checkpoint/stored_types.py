"""The number formats a safetensors file can hold, and how each is widened to float32.

Sources: the safetensors format; bfloat16 is the upper half of a float32; 8-bit floats as in the OCP "8-bit floating
point specification" (E4M3, E5M2), the MX specification (E8M0), and the `fnuz` variants of Noune et al. 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core_model.results import FloatArray

Bytes: TypeAlias = npt.NDArray[np.uint8]
Kind: TypeAlias = Literal["float", "integer", "bool", "complex"]


@dataclass(frozen=True, kw_only=True)
class StoredType:
    """One number format: its code in the header, the field's name for it, its width, and bytes -> float32.

    `widen` is None for formats whose values cannot be shown; their tensors are listed all the same. `native` is numpy's
    name of the format, where it has one.
    """

    code: str
    name: str
    bits: int
    kind: Kind
    widen: Callable[[Bytes], FloatArray] | None = None
    native: str | None = None

    @property
    def exact(self) -> Callable[[Bytes], npt.NDArray[Any]] | None:
        """Bytes to numbers in a numpy format that loses nothing; None where `widen` is."""
        native = self.native
        return self.widen if native is None else lambda raw: raw.view(native)


def _as_numpy(dtype: str) -> Callable[[Bytes], FloatArray]:
    """Widening of a format that numpy reads itself; `dtype` is little-endian."""

    def widen(raw: Bytes) -> FloatArray:
        # A float64 beyond float32 becomes infinite, a signalling NaN a quiet one: both show as what they are.
        with np.errstate(over="ignore", invalid="ignore"):
            return raw.view(dtype).astype(np.float32)

    return widen


def _bfloat16(raw: Bytes) -> FloatArray:
    """0x3F80 is 1.0: the upper 16 bits of a float32."""
    return (raw.view("<u2").astype("<u4") << np.uint32(16)).view("<f4").astype(np.float32)


def _by_table(table: FloatArray) -> Callable[[Bytes], FloatArray]:
    """Widening of an 8-bit format: one table entry for each byte."""
    return lambda raw: table[raw]


def _small_float_table(*, exponent_bits: int, bias: int, nan_codes: tuple[int, ...]) -> FloatArray:
    """The value of every byte of an 8-bit float: (-1)^s 2^(e - bias) (1 + m), subnormal at e = 0."""
    mantissa_bits = 7 - exponent_bits
    code = np.arange(256)
    sign = np.where(code & 0x80, -1.0, 1.0)
    exponent = (code & 0x7F) >> mantissa_bits
    mantissa = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    value = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    table = (sign * value).astype(np.float32)
    table[list(nan_codes)] = np.nan
    return table


def _e8m0_table() -> FloatArray:
    """The value of every byte of a bare exponent: 2^(code - 127), 255 is not a number."""
    return np.append(np.exp2(np.arange(255.0) - 127), np.nan).astype(np.float32)


def _float8_e5m2(raw: Bytes) -> FloatArray:
    """The upper 8 bits of a float16."""
    return (raw.astype("<u2") << np.uint16(8)).view("<f2").astype(np.float32)


_E4M3 = _small_float_table(exponent_bits=4, bias=7, nan_codes=(0x7F, 0xFF))
_E4M3_FNUZ = _small_float_table(exponent_bits=4, bias=8, nan_codes=(0x80,))
_E5M2_FNUZ = _small_float_table(exponent_bits=5, bias=16, nan_codes=(0x80,))

STORED_TYPES: dict[str, StoredType] = {
    stored.code: stored
    for stored in (
        StoredType(code="F64", name="float64", bits=64, kind="float", widen=_as_numpy("<f8"), native="<f8"),
        StoredType(code="F32", name="float32", bits=32, kind="float", widen=_as_numpy("<f4"), native="<f4"),
        StoredType(code="F16", name="float16", bits=16, kind="float", widen=_as_numpy("<f2"), native="<f2"),
        StoredType(code="BF16", name="bfloat16", bits=16, kind="float", widen=_bfloat16),
        StoredType(code="F8_E4M3", name="float8_e4m3fn", bits=8, kind="float", widen=_by_table(_E4M3)),
        StoredType(code="F8_E5M2", name="float8_e5m2", bits=8, kind="float", widen=_float8_e5m2),
        StoredType(code="F8_E4M3FNUZ", name="float8_e4m3fnuz", bits=8, kind="float", widen=_by_table(_E4M3_FNUZ)),
        StoredType(code="F8_E5M2FNUZ", name="float8_e5m2fnuz", bits=8, kind="float", widen=_by_table(_E5M2_FNUZ)),
        StoredType(code="F8_E8M0", name="float8_e8m0fnu", bits=8, kind="float", widen=_by_table(_e8m0_table())),
        StoredType(code="F6_E2M3", name="float6_e2m3", bits=6, kind="float"),
        StoredType(code="F6_E3M2", name="float6_e3m2", bits=6, kind="float"),
        StoredType(code="F4", name="float4", bits=4, kind="float"),
        StoredType(code="C64", name="complex64", bits=64, kind="complex"),
        StoredType(code="I64", name="int64", bits=64, kind="integer", widen=_as_numpy("<i8"), native="<i8"),
        StoredType(code="I32", name="int32", bits=32, kind="integer", widen=_as_numpy("<i4"), native="<i4"),
        StoredType(code="I16", name="int16", bits=16, kind="integer", widen=_as_numpy("<i2"), native="<i2"),
        StoredType(code="I8", name="int8", bits=8, kind="integer", widen=_as_numpy("<i1"), native="<i1"),
        StoredType(code="U64", name="uint64", bits=64, kind="integer", widen=_as_numpy("<u8"), native="<u8"),
        StoredType(code="U32", name="uint32", bits=32, kind="integer", widen=_as_numpy("<u4"), native="<u4"),
        StoredType(code="U16", name="uint16", bits=16, kind="integer", widen=_as_numpy("<u2"), native="<u2"),
        StoredType(code="U8", name="uint8", bits=8, kind="integer", widen=_as_numpy("u1"), native="u1"),
        StoredType(code="BOOL", name="bool", bits=8, kind="bool", widen=_as_numpy("?"), native="?"),
    )
}
