"""pyqtgraph's global options, set once before the first plot."""

import pyqtgraph as pg

pg.setConfigOptions(imageAxisOrder="row-major", antialias=True, useOpenGL=False, segmentedLineMode="off")
