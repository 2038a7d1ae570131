"""Reads machine-learning profiles into frames. Usable alone, in a notebook or a script:

>>> import roofterm_parsers as rp
>>> profile = rp.open_profile("trace.json.gz")
>>> profile.slices
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roofterm_parsers.errors import Interrupted, ProfileError
    from roofterm_parsers.opening import Progress, open_profile
    from roofterm_parsers.profile import Profile

__all__ = ["Interrupted", "Profile", "ProfileError", "Progress", "open_profile"]

_HOMES = {
    "Interrupted": "errors",
    "ProfileError": "errors",
    "Profile": "profile",
    "Progress": "opening",
    "open_profile": "opening",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
