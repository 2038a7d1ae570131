"""Reproducible measurements: generators of large profiles, and roofterm beside its peers in one run."""
