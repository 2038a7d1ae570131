"""What is fuzzed: each target takes bytes, and raises if a promise is broken. `SEEDS` are inputs to begin with."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from unittest import mock

import msgspec
import zstandard

from roofterm_parsers.chrome import decoding
from roofterm_parsers.chrome.reader import read
from roofterm_parsers.chrome.repair import mend, outer_fields
from roofterm_parsers.container import open_stream
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.inputs import Raw
from roofterm_parsers.profile import Source
from roofterm_parsers.xplane.reader import read as read_xplane
from tests.made_files import kineto, xla_json, xspace
from tests.unit.chrome_blocks import decoded
from tests.unit.test_chrome_forms import MIXED, written

MEMORY = 16 << 20
MOST_BYTES = 1 << 16
"""Longer inputs find nothing that shorter ones do not, and take longer."""

Target = Callable[[bytes], None]


def scanner(data: bytes) -> None:
    """A Chrome trace in whatever state is a profile that follows its schema, or a ProfileError; by forms as without them."""
    for first_place in (0, 1 << 62):
        with mock.patch.object(decoding, "BY_FORMS_FROM", first_place):
            try:
                profile = read(io.BytesIO(data), Source(path="fuzz", format="", container="plain"), lambda _: None, workers=0)
            except ProfileError:
                continue
            profile.check()


def forms(data: bytes) -> None:
    """A block says the same by forms as decoded event by event; where events stand and what is lost may be known better."""
    told = [decoded(data, by_forms=by_forms) for by_forms in (True, False)]
    for said in told:
        del said["columns"]["offset"], said["damage"]
    assert told[0] == told[1]


def repair(data: bytes) -> None:
    """What is mended is JSON, and a text that is JSON already is left as it is."""

    def is_json(text: bytes) -> bool:
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    mended = mend(data, is_json)
    assert mended is None or is_json(mended)
    if is_json(data):
        assert mended == data.decode("utf-8", "replace").encode()
    outer = outer_fields(data)
    assert outer is None or is_json(outer)


def containers(data: bytes) -> None:
    """A container gives its content, in bounds, or a ProfileError, whether one can go back in it or not."""
    for seekable in (True, False):
        try:
            stream = open_stream(Raw(io.BytesIO(data), "fuzz", lambda _: None, seekable=seekable), "fuzz", MEMORY)
            stream.read()
        except ProfileError:
            continue


def xplane(data: bytes) -> None:
    """An XPlane file in whatever state is a profile that follows its schema, or a ProfileError."""
    try:
        profile = read_xplane(data, Source(path="fuzz", format="xplane", container="plain"), lambda _: None, cancelled=lambda: False)
    except ProfileError:
        return
    profile.check()


def _zipped(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", content)
    return made.getvalue()


_TRACES = [kineto(0, kernels=6), xla_json(4), *(b"[" + written(MIXED[:33], writer) + b"]" for writer in ("torch", "compact"))]
_BROKEN = b'{"ph": "X", "name": "a "b" c\\d", "ts": 1, "args": {"x": inf, "y": N/A,, "z": [1, 2,]}}'

TARGETS: dict[str, tuple[Target, Sequence[bytes]]] = {
    "scanner": (scanner, _TRACES),
    "forms": (forms, [written(MIXED[:33], writer) for writer in ("torch", "json", "compact")]),
    "repair": (
        repair,
        [b'{"ph": "X", "name": "a "b" c\\d", "ts": 1, "args": {"x": inf, "y": N/A,, "z": [1, 2,]}}', written(MIXED[:1], "torch")],
    ),
    "containers": (containers, [pack(_TRACES[0]) for pack in (bytes, gzip.compress, zstandard.compress, _zipped)]),
    "xplane": (xplane, [xspace(5)]),
}
"""Targets by name, each with its seeds."""
