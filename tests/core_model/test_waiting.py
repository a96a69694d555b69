"""How long PyTorch's threads spin while they wait for each other: a word in the environment, before torch is loaded."""

import os
import subprocess
import sys

import pytest

_SAYS = """
import importlib, os, sys
importlib.import_module(sys.argv[1])
import torch
loaded = list(sys.modules)
print(loaded.index("core_model") < loaded.index("torch"), os.environ.get("GOMP_SPINCOUNT"))
"""
"""Modules are listed in the order in which they were first asked for."""


def said(module: str, **given: str) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    }
    command = [sys.executable, "-c", _SAYS, module]
    return subprocess.run(command, env=environment | given, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("module", ["core_model.trace.trace", "explorer.cli", "explorer.app"])
def test_threads_are_told_to_spin_shortly_before_torch_is_loaded(module: str) -> None:
    assert said(module) == "True 2000"


def test_who_has_said_how_threads_wait_is_left_alone() -> None:
    assert said("core_model.trace", GOMP_SPINCOUNT="77") == "True 77"
    assert said("core_model.trace", OMP_WAIT_POLICY="passive") == "True None"
