"""Names by which the host of a TPU's profile tells more of its devices' work than they do themselves.

Where it has none of them, a roofline of the devices is the same with the host's lines and without them (`open_profile`).
"""

from __future__ import annotations

import re

from roofterm.analysis.batches import BEGINNINGS
from roofterm.analysis.compilation import COMPILATION
from roofterm_parsers.records import HostNames

OPTIMIZER_STEP = "Optimizer.step#"
"""How the range of an optimizer's step begins."""

TELLING = HostNames(always=rf"^(?:{BEGINNINGS}|{re.escape(OPTIMIZER_STEP)})", in_steps=COMPILATION)
"""An engine's batches and the optimizer's steps are iterations, and tell phases; a step that compiles is not steady."""
