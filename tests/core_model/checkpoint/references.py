"""Tiny seeded models of the transformers library, saved as its users have them, and agreement with what it computes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel
from transformers.utils import logging

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.trace import Inputs, Trace, run_trace

logging.disable_progress_bar()  # its monitor thread would outlive the test

ATTENTION_LIMIT = 2e-5
OUTPUT_LIMIT = 2e-4
IDS = (3, 14, 1, 5, 9, 2, 6, 5, 3, 5, 8)
SITE = {"encoder": "encoder.self", "decoder": "decoder.self"}


def seeded(model: PreTrainedModel, seed: int = 0) -> PreTrainedModel:
    """The model with weights so large that its attention is far from flat, biases and gains included.

    Fixed tables, such as sines and cosines, stay.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                continue
            spread = 0.2 if "embed" in name or parameter.dim() < 2 else 1.5 * parameter.shape[-1] ** -0.5
            parameter.normal_(std=spread, generator=generator)
            if name.endswith("weight") and parameter.dim() == 1:
                parameter.add_(1)
    return model.eval()


def saved(model: PreTrainedModel, folder: Path) -> Path:
    """The folder with the model as its users have it."""
    model.save_pretrained(folder)
    return folder


def saved_state(module: torch.nn.Module, folder: Path) -> Path:
    """A module's state dict alone, as safetensors."""
    folder.mkdir(exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in module.state_dict().items()}, folder / "model.safetensors")
    return folder


def reference(model: PreTrainedModel, ids: tuple[int, ...] = IDS, **more: Any) -> Any:
    """What the library computes of one example, eagerly, with all attention maps."""
    model.set_attn_implementation("eager")
    given = {name: torch.tensor([value]) for name, value in more.items()}
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), output_attentions=True, **given)


def logits_of(output: Any) -> np.ndarray:
    """The output's logits, a question answering head's two side by side; hidden states without a head."""
    if "start_logits" in output:
        return torch.stack((output.start_logits, output.end_logits), dim=-1)[0].numpy()
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        if name in output:
            return output[name][0].numpy()
    raise AssertionError(f"no logits in {list(output)}")


def assert_close(got: Any, want: np.ndarray) -> None:
    """Two outputs are the same."""
    assert got is not None and got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=OUTPUT_LIMIT * max(1.0, float(want.std())), rtol=0)


def assert_maps_agree(trace: Trace, site: str, maps: Any) -> None:
    """Every map of every head at a site is the library's; these are far from flat."""
    assert trace.shape(site)[:2] == (len(maps), maps[0].shape[1])
    assert max(float(layer[0, :, 1:].max()) for layer in maps) > 0.5, "a flat reference would agree with anything"
    for layer, heads in enumerate(maps):
        for head, want in enumerate(heads[0].numpy()):
            np.testing.assert_allclose(trace.attention(site, layer, head), want, atol=ATTENTION_LIMIT, rtol=0)


def assert_agrees(
    folder: Path, output: Any, stack: str, *, ids: tuple[int, ...] = IDS, type_ids: tuple[int, ...] | None = None
) -> None:
    """What we compute from the saved folder equals the library's output: every map of every head, and the logits."""
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        model = checkpoint.load_model()
    trace = run_trace(model, Inputs(ids=ids, type_ids=type_ids))
    assert_maps_agree(trace, SITE[stack], output.attentions)
    assert_close(trace.hidden if trace.logits is None else trace.logits, logits_of(output))


def written_back(model: PreTrainedModel, theirs: Path, ours: Path, *, unwritten: tuple[str, ...] = ()) -> Any:
    """The model of the folder `theirs`, saved by us in `ours`, as the library opens it and as we do.

    `unwritten` are parts of names of weights that the library has and does not read.
    """
    with open_checkpoint(theirs) as checkpoint:
        read = checkpoint.load_model()
        assert checkpoint.info.family is not None
        save_as_family(ours, read, checkpoint.info.family)
    with open_checkpoint(ours) as checkpoint:
        assert checkpoint.config == read.config
    library: Any = type(model)
    again, report = library.from_pretrained(ours, output_loading_info=True, attn_implementation="eager")
    assert [name for name in report["missing_keys"] if not any(part in f"{name}." for part in unwritten)] == []
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    return again


def edit_config(folder: Path, **changes: Any) -> Path:
    """The folder with other values in its config.json; ... removes a key that is there."""
    path = folder / "config.json"
    document = json.loads(path.read_text())
    assert all(key in document for key, value in changes.items() if value is ...)
    kept = {key: value for key, value in {**document, **changes}.items() if value is not ...}
    path.write_text(json.dumps(kept))
    return folder


def edit_tensors(folder: Path, changes: Mapping[str, torch.Tensor]) -> Path:
    """The folder with further tensors in its weights."""
    path = folder / "model.safetensors"
    save_file({**load_file(path), **changes}, path, metadata={"format": "pt"})
    return folder
