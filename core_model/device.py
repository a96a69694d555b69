"""Where a model runs and in which number format: chosen once, checked here."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache

import torch

from core_model.errors import ConfigError

DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}

_KEPT_BYTES, _LARGEST_KEPT = 1 << 28, 1 << 25
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""From glibc's malloc.h."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device that can compute: its torch name and what people call it."""

    key: str
    label: str


def devices() -> tuple[Device, ...]:
    """The devices of this machine, the fastest last."""
    found = [Device(key="cpu", label=f"CPU, {os.cpu_count() or 1} cores")]
    if torch.backends.mps.is_available():
        found.append(Device(key="mps", label="Apple GPU"))
    found += [
        Device(key=f"cuda:{index}", label=torch.cuda.get_device_name(index))
        for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    ]
    return tuple(found)


def resolve_device(name: str) -> torch.device:
    """The torch device of a name from `devices`; "cuda" is the first GPU. Else ConfigError names those there are."""
    known = [device.key for device in devices()]
    key = "cuda:0" if name == "cuda" else name
    if key not in known:
        raise ConfigError(f"device is {name!r}: this machine has {', '.join(known)}")
    return torch.device(key)


def resolve_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype a model computes in. Half precision on a CPU is refused: measured 200 times slower than float32."""
    if name not in DTYPES:
        raise ConfigError(f"dtype is {name!r}: expected one of {', '.join(DTYPES)}")
    if name == "float16" and device.type == "cpu":
        raise ConfigError("dtype is 'float16': a CPU computes it some 200 times slower than float32, so use float32")
    return DTYPES[name]


def available_memory(device: torch.device) -> int | None:
    """Bytes a computation may still take on a device; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            known = dict(line.split(":", 1) for line in lines)
        return int(known["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


@cache
def keep_freed_memory() -> None:
    """Let this process keep 256 MiB that it freed, in blocks of up to 32 MiB, for what it asks for next (glibc only).

    A pass asks for the same blocks layer after layer. Given back and asked for again, every page of them is a fault:
    4 % of the time of a pass that keeps its queries and keys (12 layers, 1024 tokens, 2 cores).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
