"""Figures and numbers for papers: what a panel shows, as SVG, PDF, PNG, CSV or NPZ."""

import logging

# matplotlib warns where it cannot keep its cache: of no concern to whoever writes a figure, and no line of a command's.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
