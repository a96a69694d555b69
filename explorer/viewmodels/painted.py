"""What a screen shows of a picture that has more values than the screen has pixels for it."""

from __future__ import annotations

from explorer.viewmodels.records import HeatmapPicture, Span


def painted_note(note: str, *, is_dense: bool) -> str:
    """The picture's note, which speaks of its values, as it holds for the pixels on screen.

    Where several values share a pixel (`is_dense`) each pixel shows the strongest of them; a hint after a semicolon
    stays behind.
    """
    if not is_dense or not note:
        return note
    what, mark, hint = note.partition(";")
    return f"{what}, each pixel the strongest it covers{mark}{hint}"


def is_dense(picture: HeatmapPicture, rows: Span, cols: Span, size: tuple[int, int]) -> bool:
    """Whether the picture has more values than pixels along an axis, where `rows` and `cols` fill `size` pixels."""
    return any(
        stop - start > n_pixels * n_cells
        for (start, stop), n_pixels, n_cells in zip((rows, cols), size, picture.cells, strict=True)
    )
