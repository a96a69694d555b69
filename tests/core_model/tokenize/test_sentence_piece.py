"""sentencepiece .model files: each family's numbering and control tokens, held against the library's own pieces."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor

from core_model.errors import TokenizerError
from core_model.tokenize import Tokenizer, load_tokenizer

Load = Callable[..., Tokenizer]
Write = Callable[..., Path]
Train = Callable[..., bytes]

T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
ALBERT = {
    "pad_id": 0,
    "unk_id": 1,
    "bos_id": -1,
    "eos_id": -1,
    "control_symbols": "[CLS],[SEP]",
    "user_defined_symbols": "[MASK]",
}


def pieces(model: bytes, text: str) -> list[int]:
    return SentencePieceProcessor(model_proto=model).encode(text)


def size(model: bytes) -> int:
    return SentencePieceProcessor(model_proto=model).get_piece_size()


def inner(encoding) -> list[int]:
    return [id for id, owner in zip(encoding.ids, encoding.sequence, strict=True) if owner is not None]


def test_llama_begins_each_text_and_keeps_the_numbers_of_its_pieces(
    llama_model: bytes, texts: list[str], write: Write, load: Load
):
    folder = write(tokenizer__model=llama_model, tokenizer_config__json={"tokenizer_class": "LlamaTokenizer"})
    tokenizer = load(folder)
    for text in texts:
        encoding = tokenizer.encode(text)
        assert list(encoding.ids) == [1, *pieces(llama_model, text)]
        assert tokenizer.decode(encoding.ids) == text
    assert tokenizer.encode("a", "b").type_ids[-1] == 1


def test_flags_of_the_configuration_choose_the_control_tokens(llama_model: bytes, write: Write, load: Load):
    config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "add_eos_token": True}
    encoding = load(write(tokenizer__model=llama_model, tokenizer_config__json=config)).encode("the")
    assert (encoding.ids[-1], encoding.special[0], encoding.special[-1]) == (2, False, True)


def test_byte_pieces_share_the_span_of_their_character(llama_model: bytes, write: Write, load: Load):
    tokenizer = load(write(tokenizer__model=llama_model), model_type="llama")
    encoding = tokenizer.encode("a🙂b")
    parts = [(text, span) for text, span in zip(encoding.texts, encoding.offsets, strict=True) if "🙂" in text]
    assert parts == [(f"🙂 {number}/4", (1, 2)) for number in (1, 2, 3, 4)]


def test_offsets_cut_the_text(llama_model: bytes, write: Write, load: Load):
    text = "The cat sat on the mat."
    encoding = load(write(tokenizer__model=llama_model), model_type="llama").encode(text)
    spans = [span for span in encoding.offsets if span is not None]
    assert "".join(text[start:end] for start, end in spans) == text


def test_t5_ends_each_text_and_counts_its_sentinels_down(
    piece_model: Train, texts: list[str], write: Write, load: Load
):
    model = piece_model(**T5)
    folder = write(spiece__model=model, tokenizer_config__json={"tokenizer_class": "T5Tokenizer", "extra_ids": 20})
    tokenizer = load(folder)
    for text in texts:
        assert list(tokenizer.encode(text).ids) == [*pieces(model, text), 1]
    assert tokenizer.vocab_size == size(model) + 20
    encoding = tokenizer.encode("The <extra_id_0> sat")
    assert size(model) + 19 in encoding.ids
    at = encoding.ids.index(size(model) + 19)
    assert (encoding.texts[at], encoding.offsets[at]) == ("<extra_id_0>", (4, 16))
    assert inner(tokenizer.encode("The", "cat")) == [*pieces(model, "The"), *pieces(model, "cat")]


def test_albert_surrounds_its_texts_and_numbers_the_segments(piece_model: Train, write: Write, load: Load):
    model = piece_model(**ALBERT)
    config = {
        "tokenizer_class": "AlbertTokenizer",
        "do_lower_case": False,
        "keep_accents": True,
        "mask_token": "[MASK]",
    }
    tokenizer = load(write(spiece__model=model, tokenizer_config__json=config))
    numbers = SentencePieceProcessor(model_proto=model)
    cls, sep, mask = (numbers.piece_to_id(token) for token in ("[CLS]", "[SEP]", "[MASK]"))
    encoding = tokenizer.encode("The cat", "sat")
    first, second = pieces(model, "The cat"), pieces(model, "sat")
    assert list(encoding.ids) == [cls, *first, sep, *second, sep]
    assert encoding.type_ids == (0,) * (len(first) + 2) + (1,) * (len(second) + 1)
    assert mask in tokenizer.encode("The [MASK] sat").ids


def test_albert_lower_case_keeps_the_offsets_of_the_text_as_given(piece_model: Train, write: Write, load: Load):
    model = piece_model(**ALBERT)
    tokenizer = load(write(spiece__model=model, tokenizer_config__json={"tokenizer_class": "AlbertTokenizer"}))
    text = "THE CAFÉ ``IS'' İ near"
    encoding = tokenizer.encode(text)
    assert inner(encoding) == pieces(model, 'the cafe "is" i near')
    spans = [span for span in encoding.offsets if span is not None]
    assert spans[-1][1] == len(text)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


def test_xlmr_shifts_its_pieces_by_one_behind_fairseqs_four(
    piece_model: Train, texts: list[str], write: Write, load: Load
):
    model = piece_model()
    config = {"tokenizer_class": "XLMRobertaTokenizer", "mask_token": "<mask>"}
    tokenizer = load(write(sentencepiece__bpe__model=model, tokenizer_config__json=config))
    for text in texts:
        shifted = [3 if piece == 0 else piece + 1 for piece in pieces(model, text)]
        assert list(tokenizer.encode(text).ids) == [0, *shifted, 2]
    assert [tokenizer.token_text(id) for id in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert size(model) + 1 in tokenizer.encode("The <mask> sat").ids
    pair = tokenizer.encode("The", "cat")
    assert [id for id, special in zip(pair.ids, pair.special, strict=True) if special] == [0, 2, 2, 2]


def test_pegasus_shifts_its_pieces_by_103(piece_model: Train, write: Write, load: Load):
    model = piece_model(**T5 | {"pad_id": 0, "eos_id": 1, "unk_id": 2})
    tokenizer = load(write(spiece__model=model), model_type="pegasus")
    assert list(tokenizer.encode("The cat").ids) == [*(piece + 103 for piece in pieces(model, "The cat")), 1]
    assert tokenizer.token_text(2) == "<mask_1>"
    assert tokenizer.token_text(105) == "<unk>"
    assert tokenizer.decode(tokenizer.encode("The cat").ids) == "The cat"


def test_deberta_v2_has_its_mask_after_the_pieces(piece_model: Train, write: Write, load: Load):
    model = piece_model(pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]")
    config = {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False}
    tokenizer = load(write(spm__model=model, tokenizer_config__json=config))
    assert list(tokenizer.encode("The cat").ids) == [1, *pieces(model, "The cat"), 2]
    assert size(model) in tokenizer.encode("The [MASK]").ids


def test_mbart_puts_the_language_of_each_side_last(piece_model: Train, write: Write, load: Load):
    model = piece_model()
    config = {
        "tokenizer_class": "MBartTokenizer",
        "src_lang": "en_XX",
        "tgt_lang": "fr_XX",
        "additional_special_tokens": ["de_DE", "en_XX", "fr_XX"],
    }
    tokenizer = load(write(sentencepiece__bpe__model=model, tokenizer_config__json=config))
    first_language = size(model) + 1
    assert tokenizer.encode("The cat").ids[-2:] == (2, first_language + 1)
    assert tokenizer.encode_target("Le café").ids[-2:] == (2, first_language + 2)
    assert tokenizer.token_text(first_language + 3) == "<mask>"


def test_mbart50_puts_the_language_first(piece_model: Train, write: Write, load: Load):
    model = piece_model()
    config = {"tokenizer_class": "MBart50Tokenizer", "src_lang": "en_XX", "additional_special_tokens": ["en_XX"]}
    tokenizer = load(write(sentencepiece__bpe__model=model, tokenizer_config__json=config))
    encoding = tokenizer.encode("The cat")
    assert (encoding.ids[0], encoding.ids[-1]) == (size(model) + 1, 2)


def test_camembert_has_five_entries_before_its_pieces(piece_model: Train, texts: list[str], write: Write, load: Load):
    """<s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED, then the pieces from the second on: <s> is 5."""
    model = piece_model()
    tokenizer = load(write(sentencepiece__bpe__model=model), model_type="camembert")
    for text in texts:
        want = [3 if piece == 0 else piece + 4 for piece in pieces(model, text)]
        assert list(tokenizer.encode(text).ids) == [5, *want, 6]
    assert [tokenizer.token_text(id) for id in (1, 3, 5, 6)] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.encode("The <mask>").ids[-2] == size(model) + 4


def test_nllb_puts_the_language_first(piece_model: Train, write: Write, load: Load):
    model = piece_model()
    languages = ["deu_Latn", "eng_Latn", "fra_Latn"]
    config = {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": languages, "tgt_lang": "fra_Latn"}
    tokenizer = load(write(sentencepiece__bpe__model=model, tokenizer_config__json=config), model_type="m2m_100")
    first_language = size(model) + 1
    assert list(tokenizer.encode("The cat").ids) == [
        first_language + 1,
        *(piece + 1 for piece in pieces(model, "The cat")),
        2,
    ]
    assert tokenizer.encode_target("Le chat").ids[0] == first_language + 2


def test_a_family_with_a_numbering_of_its_own_that_is_not_known_is_refused(
    llama_model: bytes, write: Write, load: Load
):
    folder = write(tokenizer__model=llama_model, tokenizer_config__json={"tokenizer_class": "XLNetTokenizer"})
    with pytest.raises(TokenizerError, match=r"belongs to xlnet, whose numbering .* tokenizer\.json"):
        load(folder)


def test_xglm_begins_with_the_end_token_and_numbers_its_pieces_as_fairseq_does(
    piece_model: Train, texts: list[str], write: Write, load: Load
):
    """<s> <pad> </s> <unk>, then the pieces from the fourth on: one later than sentencepiece has them."""
    model = piece_model()
    tokenizer = load(write(sentencepiece__bpe__model=model), model_type="xglm")
    for text in texts:
        want = [3 if piece == 0 else piece + 1 for piece in pieces(model, text)]
        assert list(tokenizer.encode(text).ids) == [2, *want]
    assert [tokenizer.token_text(id) for id in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]


def test_control_tokens_of_the_model_cannot_be_typed(llama_model: bytes, write: Write, load: Load):
    tokenizer = load(write(tokenizer__model=llama_model), model_type="llama")
    assert inner(tokenizer.encode("</s>")) == pieces(llama_model, "</s>")


def test_listed_tokens_can_be_typed(llama_model: bytes, write: Write, load: Load):
    config = {
        "tokenizer_class": "LlamaTokenizer",
        "added_tokens_decoder": {"420": {"content": "<|im_start|>", "special": True}},
    }
    tokenizer = load(write(tokenizer__model=llama_model, tokenizer_config__json=config))
    encoding = tokenizer.encode("a<|im_start|>b")
    at = encoding.ids.index(420)
    assert (encoding.texts[at], encoding.offsets[at], encoding.sequence[at]) == ("<|im_start|>", (1, 13), 0)
    assert "im_start" not in tokenizer.decode(encoding.ids)


def test_a_lone_model_file_is_read_as_llamas_and_says_so(llama_model: bytes, write: Write, load: Load):
    assert "read as Llama's" in load(write(tokenizer__model=llama_model)).warnings[0]


@pytest.mark.parametrize("keep", [0, 1, 1000])
def test_a_model_file_cut_short_is_named(keep: int, llama_model: bytes, write: Write, load: Load):
    with pytest.raises(TokenizerError, match=r"tokenizer\.model (is damaged|is empty)"):
        load(write(tokenizer__model=llama_model[:keep]))


def test_a_model_file_with_pieces_that_are_no_text_is_named(llama_model: bytes, write: Write, load: Load):
    damaged = llama_model.replace("▁the".encode(), b"\xe2\x28\x81the")
    assert damaged != llama_model
    with pytest.raises(TokenizerError, match=r"tokenizer\.model is damaged"):
        load(write(tokenizer__model=damaged))


def test_a_tiktoken_vocabulary_is_named_as_such(write: Write, load: Load):
    with pytest.raises(TokenizerError, match="is a tiktoken vocabulary"):
        load(write(tokenizer__model=b"IQ== 0\nIg== 1\n"), model_type="gemma")


def test_ids_beyond_the_models_rows_are_refused(llama_model: bytes, write: Write, load: Load):
    tokenizer = load(write(tokenizer__model=llama_model), model_type="llama", vocab_size=100)
    with pytest.raises(TokenizerError, match="100 rows"):
        tokenizer.encode("The cat")


def test_more_pieces_than_any_model_has_are_refused_before_they_are_read(tmp_path: Path):
    piece = b"\x0a\x03\x0a\x01a"  # a part of kind 1 and 3 bytes: of kind 1 and 1 byte, the text
    (tmp_path / "spiece.model").write_bytes(piece * 950_001)
    with pytest.raises(TokenizerError, match=r"has more than 950,000 pieces: use the model's own file"):
        load_tokenizer(tmp_path, model_type="t5")
