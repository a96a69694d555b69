"""What opening says of a model, and what it refuses to load: unknown ones, missing, extra and mis-shaped tensors."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from core_model.cancel import CancelToken
from core_model.checkpoint import open_checkpoint
from core_model.errors import Cancelled, CheckpointError, ConfigError, TokenizerError
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.tiny import changed, refusal


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "evilnet", "auto_map": {"AutoModel": "evil.Model"}}, "evilnet.*auto_map.*never run"),
        ({"model_type": "../../evil"}, "evil.*unknown"),
        ({"model_type": 5, "architectures": ["Nothing"]}, "Nothing"),
        ({"model_type": ..., "architectures": ..., "_class_name": "UNet2DConditionModel"}, "UNet2D.*diffusers"),
    ],
)
def test_an_unknown_model_is_named_and_its_tensors_are_listed(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    error = refusal(tiny.write(tmp_path, changed(**changes)))
    assert isinstance(error, CheckpointError)
    with pytest.raises(CheckpointError, match=said):
        raise error
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.info.family is None
        assert checkpoint.config is None


def test_a_config_that_names_no_model_is_read_as_the_tensors_tell(tmp_path: Path) -> None:
    unnamed = changed(model_type=..., architectures=...)
    with open_checkpoint(tiny.write(tmp_path / "told", unnamed)) as checkpoint:
        assert checkpoint.info.family == "gpt2"
        checkpoint.load_model()
    weights = {f"some.{name}": tensor for name, tensor in tiny.tensors().items()}
    assert "names no model_type" in str(refusal(tiny.write(tmp_path / "untold", unnamed, weights)))


def test_without_a_model_type_the_architecture_tells_the_family(tmp_path: Path) -> None:
    with open_checkpoint(tiny.write(tmp_path, changed(model_type=...))) as checkpoint:
        assert checkpoint.info.family == "gpt2"


def test_custom_code_beside_a_known_model_is_said_not_run(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path, changed(auto_map={"AutoModel": "modeling_evil.Model"}))
    (folder / "modeling_evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with open_checkpoint(folder) as checkpoint:
        checkpoint.load_model()
        assert any("auto_map" in warning for warning in checkpoint.info.warnings)
    assert not (tmp_path / "ran").exists()
    assert "modeling_evil" not in sys.modules


@pytest.mark.parametrize("name", list(tiny.tensors()))
def test_any_missing_tensor_blocks_loading_and_is_named(name: str, tmp_path: Path) -> None:
    weights = tiny.tensors()
    del weights[name]
    error = refusal(tiny.write(tmp_path, weights=weights))
    assert f"1 tensor the config asks for is missing from the file ({name}): " in str(error)
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.info.missing == (name,)
        assert checkpoint.info.family == "gpt2"


def test_a_missing_head_of_an_untied_model_blocks_loading(tmp_path: Path) -> None:
    assert "lm_head.weight" in str(refusal(tiny.write(tmp_path, changed(tie_word_embeddings=False))))


def test_an_absent_head_is_the_table_when_the_config_does_not_say_otherwise(tmp_path: Path) -> None:
    with open_checkpoint(tiny.write(tmp_path, changed(tie_word_embeddings=...))) as checkpoint:
        assert checkpoint.info.tied == ("lm_head.weight = transformer.wte.weight",)
        fact = next(fact for fact in checkpoint.info.inferred if fact.name == "output head's weight")
        assert fact.value == "tied to the token embedding"
        model = checkpoint.load_model()
        assert "head.output.weight" not in model.state_dict()


def test_a_layer_more_than_the_config_says_is_a_warning_that_names_it(tmp_path: Path) -> None:
    with open_checkpoint(tiny.write(tmp_path, changed(n_layer=1))) as checkpoint:
        assert all(name.startswith("transformer.h.1.") for name in checkpoint.info.unexpected)
        assert len(checkpoint.info.unexpected) == 12
        assert any("transformer.h.1." in warning for warning in checkpoint.info.warnings)
        checkpoint.load_model()


def test_a_layer_less_than_the_config_says_blocks_loading(tmp_path: Path) -> None:
    assert "transformer.h.2." in str(refusal(tiny.write(tmp_path, changed(n_layer=3))))


@pytest.mark.parametrize("key", ["n_embd", "vocab_size", "n_positions", "n_inner"])
@pytest.mark.parametrize("value", [6, 10**8, 10**12])
def test_sizes_are_held_against_the_tensors_before_anything_is_built(key: str, value: int, tmp_path: Path) -> None:
    error = refusal(tiny.write(tmp_path, changed(**{key: value})))
    assert "expected" in str(error)
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.info.misshaped


def test_sizes_the_config_lacks_are_read_off_the_shapes(tmp_path: Path) -> None:
    lacking = changed(n_embd=..., vocab_size=..., n_positions=..., n_layer=...)
    with open_checkpoint(tiny.write(tmp_path, lacking)) as checkpoint:
        inferred = {fact.name: fact.value for fact in checkpoint.info.inferred}
        assert inferred["model width"] == str(tiny.D_MODEL)
        assert inferred["layers"] == str(tiny.N_LAYERS)
        assert checkpoint.load_model().config == checkpoint.config


def test_facts_of_the_config_are_marked_stated(tmp_path: Path) -> None:
    with open_checkpoint(tiny.write(tmp_path)) as checkpoint:
        facts = {fact.name: fact for fact in checkpoint.info.facts}
    assert (facts["heads"].value, facts["heads"].origin) == ("2", "stated")
    assert facts["feed-forward width"].origin == "inferred"


def test_assumed_facts_fill_what_the_config_lacks_and_others_are_refused(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path, changed(n_head=...))
    with open_checkpoint(folder, assume={"n_heads": 4}) as checkpoint:
        assert checkpoint.config is not None
        assert checkpoint.config.attention_layers()["decoder.self"][0].n_heads == 4
    with open_checkpoint(folder, assume={"wheels": 4}) as checkpoint:
        assert "n_heads" in (checkpoint.info.refusal or "")
        assert "wheels" in (checkpoint.info.refusal or "")


@pytest.mark.parametrize(
    ("assume", "told"),
    [
        ({"n_heads": 4}, "n_heads was given as 4, but n_head is 2 by config.json"),
        (
            {"activation": "relu"},
            "activation was given as 'relu', but activation_function is 'gelu_new' by config.json",
        ),
        ({"eps": 0.1}, "eps was given as 0.1, but layer_norm_epsilon is 1e-05 by config.json"),
        ({"n_heads": 2, "n_layers": 1}, "n_layers was given as 1, but n_layer is 2 by config.json"),
    ],
)
def test_a_given_fact_that_the_config_states_otherwise_is_refused_with_both(
    assume: dict[str, object], told: str, tmp_path: Path
) -> None:
    with open_checkpoint(tiny.write(tmp_path), assume=assume) as checkpoint:
        assert checkpoint.tensors
        assert told in (checkpoint.info.refusal or "")
        with pytest.raises(ConfigError, match=r"leave .* out, or correct the file"):
            checkpoint.load_model()


def test_a_given_fact_that_the_shapes_tell_otherwise_is_refused_with_both(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    (folder / "config.json").unlink()
    with open_checkpoint(folder, assume={"n_heads": 2, "n_layers": 1}) as checkpoint:
        assert "n_layers was given as 1, but n_layer is 2 by the shapes of its tensors" in (
            checkpoint.info.refusal or ""
        )


def test_a_given_fact_that_the_files_state_as_well_changes_nothing(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    with open_checkpoint(folder) as plain, open_checkpoint(folder, assume={"n_heads": 2, "n_layers": 2}) as told:
        assert told.info.refusal is None and told.info == plain.info


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "Inf"), (-math.inf, "Inf")])
def test_a_weight_that_is_no_number_is_a_warning_that_names_its_tensor(value: float, word: str, tmp_path: Path) -> None:
    weights = tiny.tensors()
    weights["transformer.h.1.mlp.c_fc.weight"][3, 5] = value
    with open_checkpoint(tiny.write(tmp_path, weights=weights)) as checkpoint:
        checkpoint.load_model()
        (warning,) = [text for text in checkpoint.info.warnings if word in text]
    assert "transformer.h.1.mlp.c_fc.weight" in warning


def test_whole_numbers_in_the_place_of_weights_are_refused(tmp_path: Path) -> None:
    weights = tiny.tensors()
    weights["transformer.h.0.mlp.c_fc.weight"] = weights["transformer.h.0.mlp.c_fc.weight"].astype(np.int8)
    assert "int8" in str(refusal(tiny.write(tmp_path, weights=weights)))


def test_quantised_weights_are_refused_by_their_method(tmp_path: Path) -> None:
    weights = tiny.tensors() | {"transformer.h.0.mlp.c_fc.qweight": np.zeros((2, 2), np.int32)}
    config = changed(quantization_config={"quant_method": "gptq", "bits": 4})
    assert "gptq" in str(refusal(tiny.write(tmp_path, config, weights)))


def test_a_quantisation_that_plain_weights_deny_is_only_said(tmp_path: Path) -> None:
    config = changed(quantization_config={"quant_method": "gptq", "bits": 4})
    with open_checkpoint(tiny.write(tmp_path, config)) as checkpoint:
        checkpoint.load_model()
        assert any("gptq" in warning for warning in checkpoint.info.warnings)


def test_strange_names_are_listed_as_they_are(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "a\nb", "../../x", "h.999999999999999999999.ln_1.weight", "\u202eevil", " "]
    weights = {name: np.array([1], np.float32) for name in names}
    error = refusal(tiny.write(tmp_path, weights=weights))
    assert str(error).isprintable()
    with open_checkpoint(tmp_path) as checkpoint:
        assert sorted(checkpoint.tensors) == sorted(names)
        assert all(text.isprintable() for text in checkpoint.info.warnings)


def test_tensors_are_described_with_our_name_for_them(tmp_path: Path) -> None:
    with open_checkpoint(tiny.write(tmp_path)) as checkpoint:
        fused = checkpoint.tensors["transformer.h.1.attn.c_attn.weight"]
        assert (fused.shape, fused.dtype, fused.n_bytes) == ((8, 24), "float32", 768)
        assert fused.file == tmp_path / "model.safetensors"
        assert fused.site == ", ".join(
            f"decoder.layers.1.attention.{part}.weight" for part in ("query", "key", "value")
        )
        np.testing.assert_array_equal(
            checkpoint.read_tensor("transformer.wte.weight"), tiny.tensors()["transformer.wte.weight"]
        )
        with pytest.raises(CheckpointError, match="no tensor named nothing"):
            checkpoint.read_tensor("nothing")


def test_fifty_thousand_tensors_stay_usable(tmp_path: Path) -> None:
    save_file({f"t.{i}": np.empty((0,), np.float32) for i in range(50_000)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(changed(n_layer=1000)))
    with open_checkpoint(tmp_path) as checkpoint:
        assert len(checkpoint.tensors) == 50_000
        assert len(checkpoint.info.refusal or "") < 1000


def test_half_precision_weights_are_widened_exactly(tmp_path: Path) -> None:
    halves = {name: values.astype(np.float16) for name, values in tiny.tensors().items()}
    with open_checkpoint(tiny.write(tmp_path, weights=halves)) as checkpoint:
        assert checkpoint.info.dtype == "float16"
        loaded = checkpoint.load_model().state_dict()["decoder.embedding.token.weight"].numpy()
    np.testing.assert_array_equal(loaded, halves["transformer.wte.weight"].astype(np.float32))


def test_loading_can_be_cancelled_and_tells_how_far_it_is(tmp_path: Path) -> None:
    token, told = CancelToken(), []

    def on_progress(fraction: float) -> None:
        told.append(fraction)
        token.cancel()

    with open_checkpoint(tiny.write(tmp_path)) as checkpoint:
        with pytest.raises(Cancelled):
            checkpoint.load_model(cancel=token, progress=on_progress)
        assert len(told) == 1
        checkpoint.load_model(progress=told.append)
    assert told[-1] == 1.0


def test_without_a_tokenizer_text_is_refused_and_the_model_still_loads(tmp_path: Path) -> None:
    with open_checkpoint(tiny.write(tmp_path)) as checkpoint:
        assert checkpoint.tokenizer is None
        assert any("no tokenizer" in warning for warning in checkpoint.info.warnings)
        with pytest.raises(TokenizerError, match="token ids"):
            checkpoint.encode("text")
        assert checkpoint.load_model() is not None


def test_a_broken_tokenizer_is_a_warning(tmp_path: Path) -> None:
    (tiny.write(tmp_path) / "tokenizer.json").write_text("not json")
    with open_checkpoint(tmp_path) as checkpoint:
        assert any("tokenizer cannot be used" in warning for warning in checkpoint.info.warnings)
        assert checkpoint.load_model() is not None


def test_opening_needs_no_torch_and_writes_nothing(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    before = [(path.name, path.stat().st_mtime_ns) for path in folder.iterdir()]
    script = (
        "import sys; from core_model.checkpoint import open_checkpoint\n"
        f"with open_checkpoint({str(folder)!r}) as checkpoint:\n"
        "    print(checkpoint.info.family, checkpoint.read_tensor('transformer.wte.weight').shape)\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "gpt2 (11, 8)\n"
    assert [(path.name, path.stat().st_mtime_ns) for path in folder.iterdir()] == before


def test_a_path_without_a_last_part_is_named_whole() -> None:
    with pytest.raises(CheckpointError, match=f"^{re.escape(Path.cwd().anchor)} holds no"):
        open_checkpoint(Path.cwd().anchor)


def test_names_all_behind_a_prefix_of_another_module_are_told_with_it(tmp_path: Path) -> None:
    tiny.write(tmp_path, weights={f"backbone.{name}": tensor for name, tensor in tiny.tensors().items()})
    with open_checkpoint(tmp_path) as checkpoint:
        assert "begin with backbone., " in (checkpoint.info.refusal or "")
        assert checkpoint.info.dtype == "float32"
