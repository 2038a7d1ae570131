"""Writes traces of a transformer's training as an H100 would give them. Synthetic: no device was measured.

`kernels` says what work costs, `machine` plays host threads, streams and the allocator, `ops` and `model` run a training
step on it, `kineto` writes what was played as a PyTorch trace, `books` adds up the figures that a reader must find.
"""
