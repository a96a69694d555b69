"""`python -m tests.bench [attention] [startup] [--device cuda]`: every table, or those named."""

from __future__ import annotations

import argparse

import torch

from tests.bench import attention
from tests.bench.measure import print_table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure, and print what was found.")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__} on {device} ({name})")
    for group in attention.lines(device):
        print_table("attention", group)


if __name__ == "__main__":
    main()
