"""Whole model folders, tiny, as {name: content}: one of every family, with each kind of tokenizer, to be broken."""

from __future__ import annotations

import io
import json
import re
import wave
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import sentencepiece
import torch
from PIL import Image
from safetensors.torch import save
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from core_model.checkpoint.families import FAMILIES
from core_model.checkpoint.families.family import Family, assignments, weights_of
from core_model.checkpoint.native import save_run_model
from core_model.keys import read_keys
from core_model.nn.initialization import initialize
from core_model.nn.transformer import Transformer
from core_model.shapes import tensor_shapes
from core_model.tokenize.native import CharacterTokenizer

Folder: TypeAlias = Mapping[str, bytes]

WEIGHTS, CONFIG, INDEX = "model.safetensors", "config.json", "model.safetensors.index.json"
PARAMS, PREPROCESSOR = "params.json", "preprocessor_config.json"
PICTURE, SOUND = "picture.png", "sound.wav"
SENTENCES = ["The cat sat on the mat.", "A naïve reader asks: what does this head attend to?", "3, 14 and 159"] * 20
_VOCAB = 512
_SIZES = (
    (r"vocab_size|decoder_vocab_size", _VOCAB),
    (r"(num_|n_|encoder_|decoder_|num_hidden_|num_decoder_|n_decoder_)layers?|depth", 2),
    (r"(num_|n_|num_attention_|attention_|encoder_attention_|decoder_attention_|num_key_value_|num_kv_)heads?", 2),
    (r"hidden_size|n_embd|d_model|dim|embed_dim|word_embed_proj_dim|embedding_size", 16),
    (r"head_dim|d_kv|attention_head_size|image_size", 8),
    (r"(\w+_)?intermediate_size|(\w+_)?ffn_dim|d_ff|hidden_dim|n_inner|d_hidden|ffn_hidden_size", 12),
    (r"max_(position_embeddings|source_positions|target_positions|seq_len)|n_positions|block_size", 64),
    (r"rotary_dim|patch_size|num_mel_bins|num_experts|num_local_experts", 4),
    (r"num_experts_per_tok", 2),
    (r"(bos|eos|pad|decoder_start)_token_id", 1),
)
_TOGETHER = {"gpt_neo": {"attention_types": [[["global", "local"], 1]]}}
_NO_CONFIG = ("torch_", "timm_")
"""How families of bare state dicts begin; `bare` makes some."""


FAMILY_KEYS = [family.key for family in FAMILIES if not family.key.startswith(_NO_CONFIG)]


@cache
def of_families() -> dict[str, Folder]:
    """A model of every family whose checkpoints have a config.json, by the family's key."""
    return {key: _of_family(_family(key)) for key in FAMILY_KEYS}


@cache
def bare() -> dict[str, Folder]:
    """State dicts of PyTorch's own modules, without a config."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 12, batch_first=True)
    modules = (
        torch.nn.MultiheadAttention(16, 2),
        torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
        torch.nn.Transformer(16, 2, 2, 2, 12, batch_first=True),
    )
    return {type(module).__name__: {WEIGHTS: save(dict(module.state_dict()))} for module in modules}


@cache
def native() -> Folder:
    """A run folder of our own."""
    keys = read_keys(_small(_family("gpt2").keys), _family("gpt2").keys)
    model = _model(_family("gpt2"), keys)
    return _written(lambda folder: save_run_model(folder, model, CharacterTokenizer.of_text("The cat sat."), {}))


@cache
def sharded() -> Folder:
    """The same tensors in two files with an index."""
    whole = of_families()["gpt2"]
    header, data = split(whole[WEIGHTS])
    names = list(header)
    weight_map: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        name = f"model-{number:05}-of-00002.safetensors"
        weight_map |= dict.fromkeys(part, name)
        files[name] = joined(*_repacked({name: header[name] for name in part}, data))
    index = {"metadata": {"total_size": len(data)}, "weight_map": weight_map}
    return {CONFIG: whole[CONFIG], INDEX: json.dumps(index).encode(), **files}


@cache
def adapter() -> Folder:
    """A LoRA adapter with its base in a folder beside it."""
    base = of_families()["llama"]
    stem = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    factors = {f"{stem}A.weight": torch.ones(2, 16), f"{stem}B.weight": torch.ones(16, 2)}
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": "base",
        "r": 2,
        "lora_alpha": 4,
        "target_modules": ["q_proj"],
        "rank_pattern": {},
        "alpha_pattern": {},
        "use_rslora": False,
        "use_dora": False,
        "fan_in_fan_out": False,
        "init_lora_weights": True,
        "modules_to_save": None,
    }
    beside = {f"base/{name}": content for name, content in base.items()}
    return {"adapter_config.json": json.dumps(config).encode(), "adapter_model.safetensors": save(factors), **beside}


@cache
def with_tokenizers() -> dict[str, Folder]:
    """A model with each kind of tokenizer files."""
    models_of = of_families()
    pieces, byte_pieces = _pieces(model_type="unigram"), _pieces(model_type="bpe", byte_fallback=True)
    piece_ids = json.dumps({"<pad>": 0, "<unk>": 1, "</s>": 2, "\u2581the": 3, "\u2581cat": 4}).encode()
    translating = {"source.spm": pieces, "target.spm": pieces, "vocab.json": piece_ids}
    library, vocabulary, merges = _byte_pairs()
    words = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "on", "."]).encode()

    def settings(**said: object) -> dict[str, bytes]:
        return {"tokenizer_config.json": json.dumps(said).encode()}

    template = {"chat_template": "{{ messages }}", "added_tokens_decoder": {"5": {"content": "<x>", "special": True}}}
    special = {"special_tokens_map.json": b'{"eos_token": "</s>", "unk_token": {"content": "<unk>"}}'}
    classes = ["[CLS]", "[SEP]", "[MASK]", "<pad>"]
    languages = {"special_tokens_map.json": b'{"additional_special_tokens": ["__en__", "__de__"]}'}
    return {
        "tokenizer.json": {**models_of["gpt2"], "tokenizer.json": library, **settings(**template)},
        "byte pairs": {
            **models_of["gpt2"],
            "vocab.json": vocabulary,
            "merges.txt": merges,
            **settings(tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>"),
            **special,
            "added_tokens.json": b'{"<extra>": 300}',
        },
        "wordpiece": {**models_of["bert"], "vocab.txt": words, **settings(do_lower_case=True)},
        "llama": {**models_of["llama"], "tokenizer.model": byte_pieces, **settings(add_bos_token=True), **special},
        "t5": {**models_of["t5"], "spiece.model": pieces, **settings(extra_ids=3), **special},
        "albert": {**models_of["albert"], "spiece.model": _pieces(user_defined_symbols=classes)},
        "xlm-roberta": {
            **models_of["roberta"],
            "sentencepiece.bpe.model": pieces,
            **settings(tokenizer_class="XLMRobertaTokenizer"),
        },
        "marian": {**models_of["marian"], **translating, **settings(source_lang="en", target_lang="de")},
        "m2m100": {
            **models_of["m2m100"],
            "sentencepiece.bpe.model": pieces,
            "vocab.json": piece_ids,
            **settings(tokenizer_class="M2M100Tokenizer", src_lang="en"),
            **languages,
        },
        "native": native(),
    }


@cache
def with_files() -> tuple[Folder, ...]:
    """Models of pictures and sounds with their settings, and with something to read."""
    picture, sound = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (12, 10), (200, 30, 60)).save(picture, "PNG")
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(bytes(range(256)) * 20)
    pictures = {
        "do_resize": True,
        "size": {"height": 8, "width": 8},
        "resample": 3,
        "do_center_crop": False,
        "crop_size": 8,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.2, 0.2, 0.2],
    }
    sounds = {"feature_size": 4, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400, "chunk_length": 30}
    seeing = {PREPROCESSOR: json.dumps(pictures).encode(), PICTURE: picture.getvalue()}
    hearing = {PREPROCESSOR: json.dumps(sounds).encode(), SOUND: sound.getvalue()}
    families = of_families()
    return *({**families[key], **seeing} for key in ("vit", "dinov2", "clip")), {**families["whisper"], **hearing}


def split(file: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the data of a safetensors file."""
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:end])
    header.pop("__metadata__", None)
    return header, file[end:]


def joined(header: bytes, data: bytes) -> bytes:
    """A safetensors file of the two."""
    return len(header).to_bytes(8, "little") + header + data


def settings_of(folder: Folder) -> str:
    """The file that states its sizes."""
    return CONFIG if CONFIG in folder else PARAMS


def _of_family(family: Family) -> Folder:
    document = {**_small(family.keys), **_TOGETHER.get(family.key, {})}
    keys = read_keys(document, family.keys)
    model = _model(family, keys)
    weights = save({name: tensor.contiguous().clone() for name, tensor in _tensors(family, model)})
    if family.document == PARAMS:
        return {PARAMS: json.dumps(document).encode(), "consolidated.safetensors": weights}
    named = {"model_type": family.model_types[0], "architectures": [_architecture(family)]}
    return {CONFIG: json.dumps({**named, **document}).encode(), WEIGHTS: weights}


def _tensors(family: Family, model: Transformer) -> Iterator[tuple[str, torch.Tensor]]:
    """The model's weights under the family's names."""
    state, n_layers = model.state_dict(), max(stack.n_layers for stack in model.config.stacks.values())
    for line in assignments(family.names.rows(model.config), tensor_shapes(model.config), n_layers):
        yield from zip(line.theirs, line.conversion.to_theirs([state[name] for name in line.ours]), strict=True)


def _model(family: Family, keys: Any) -> Transformer:
    config = family.read(keys, weights_of(family.names, {}, architecture=_architecture(family)))
    model = Transformer(config)
    initialize(model, generator=torch.Generator().manual_seed(0))
    return model


def _architecture(family: Family) -> str | None:
    return next(iter(family.architectures), None)


def _small(keys: type) -> dict[str, Any]:
    """The sizes of a config.json, and of the parts in it, all of them small."""
    parts = {field.name: _small(type(field.default)) for field in fields(keys) if is_dataclass(field.default)}
    sizes = {field.name: size for field in fields(keys) if (size := _size_of(field.name)) is not None}
    return parts | sizes


def _size_of(name: str) -> int | None:
    return next((size for pattern, size in _SIZES if re.fullmatch(pattern, name)), None)


def _family(key: str) -> Family:
    return next(family for family in FAMILIES if family.key == key)


def _repacked(header: Mapping[str, Any], data: bytes) -> tuple[bytes, bytes]:
    """Some tensors of a file as a file of their own."""
    parts, entries, position = [], {}, 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        parts.append(data[begin:end])
        entries[name] = {**entry, "data_offsets": [position, position + end - begin]}
        position += end - begin
    return json.dumps(entries).encode(), b"".join(parts)


def _byte_pairs() -> tuple[bytes, bytes, bytes]:
    """A byte-level BPE trained here: tokenizer.json, vocab.json, merges.txt."""
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(SENTENCES, trainer)
    model = json.loads(library.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    text = "\n".join(["#version: 0.2", *merges]) + "\n"
    return library.to_str().encode(), json.dumps(model["vocab"]).encode(), text.encode()


def _pieces(**options: Any) -> bytes:
    """A sentencepiece model trained here."""
    written = io.BytesIO()
    settings = {"vocab_size": 320, "hard_vocab_limit": False, "minloglevel": 2, **options}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), model_writer=written, **settings)
    return written.getvalue()


def _written(write: Any) -> Folder:
    with TemporaryDirectory() as parent:
        folder = Path(parent, "model")
        write(folder)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def every() -> Iterator[Folder]:
    """All of them."""
    yield from of_families().values()
    yield from bare().values()
    yield from with_tokenizers().values()
    yield from with_files()
    yield sharded()
    yield adapter()
