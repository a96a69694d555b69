"""`python -m tests.bench`: every table; `python -m tests.bench attention --device cuda`: one, on a GPU."""

from __future__ import annotations

import argparse
import platform

import torch

from tests.bench import attention, files, startup
from tests.bench.measure import print_table

_TABLES = ("startup", "files", "attention")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure, and print what was found.")
    parser.add_argument("tables", nargs="*", choices=_TABLES, default=_TABLES, metavar=" | ".join(_TABLES))
    parser.add_argument("--device", default="cpu", help="where the attention table runs (default: %(default)s)")
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    print(f"torch {torch.__version__} on {device}: {name}, {torch.get_num_threads()} threads")
    if "startup" in options.tables:
        print_table("startup", startup.lines())
    if "files" in options.tables:
        print_table("files", list(files.lines()))
    if "attention" in options.tables:
        for group in attention.lines(device):
            print_table("attention", group)


if __name__ == "__main__":
    main()
