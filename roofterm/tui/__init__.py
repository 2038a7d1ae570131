"""The explorer.

Textual reads its pace from the environment when it is imported, which is after this: how soon `esc` alone is a key, and how soon
after a drawing the next one may follow, of the two or three that a screen takes to fit itself.
"""

import os

os.environ.setdefault("ESCDELAY", "15")
os.environ.setdefault("TEXTUAL_FPS", "120")
