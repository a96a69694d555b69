"""Named colours, fonts, distances and icons."""
