"""pyqtgraph with our options. Plots import `pg` from here, so that none is made before the options are set."""

import pyqtgraph as pg

pg.setConfigOptions(imageAxisOrder="row-major", antialias=True, useOpenGL=False)

__all__ = ["pg"]
