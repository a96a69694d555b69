"""Transformers and what happens inside them: a library that knows no window."""

import os

# On Linux the threads of PyTorch (GNU's OpenMP) wait for each other by spinning, 300 000 turns long, before they sleep.
# Beside another busy program the one that is waited for gets no processor meanwhile: on two cores, pictures took up to
# 130 times as long. 2000 turns are as quick on an idle machine. Read when torch is loaded: without effect where that
# was before this package; processes that are started from here inherit it.
if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "2000"
