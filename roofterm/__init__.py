"""roofterm: a machine-learning profile, opened where it lies, in the terminal."""

__version__ = "0.1.0"
