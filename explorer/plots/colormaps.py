"""Colour maps by name, as tables that the image, the colour bar and the export share."""

import numpy as np
from numpy.typing import NDArray


def lookup_table(name: str, *, is_dark: bool = False) -> NDArray[np.uint8]:
    """[256, 4] RGBA. `is_dark` matters to "diverging" only: near-black in the middle instead of white."""
    raise NotImplementedError
