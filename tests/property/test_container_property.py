"""Whatever bytes a container has, its content comes out right, or a ProfileError does; and it comes out in bounds."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from functools import partial

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from roofterm_parsers import deflate
from roofterm_parsers.container import open_stream
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.inputs import Raw

MEMORY = 1 << 20
CONTENT = st.one_of(
    st.binary(min_size=1, max_size=4000), st.builds(lambda a, n: a * n, st.binary(min_size=1, max_size=40), st.integers(1, 2000))
)


def content_of(data: bytes, seekable: bool) -> tuple[bytes, bool]:
    """What a stream of these bytes gives, and whether it warned."""
    stream = open_stream(Raw(io.BytesIO(data), "file", lambda _: None, seekable=seekable), "file", MEMORY)
    return stream.read(), bool(stream.warnings)


def is_packed(content: bytes) -> bool:
    """True if the content itself begins like a container or a mark, and is unpacked further."""
    return content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK", b"\xef\xbb\xbf")) or content[1:4] == b"\x2a\x4d\x18"


def pack(content: bytes, how: str, level: int) -> bytes:
    if how == "gzip":
        return gzip.compress(content, level)
    if how == "zstd":
        return zstandard.compress(content, level)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED, compresslevel=level) as archive:
        archive.writestr("trace.json", content)
    return made.getvalue()


@given(CONTENT.filter(lambda content: not is_packed(content)), st.sampled_from(["gzip", "zstd", "zip"]), st.integers(0, 9), st.booleans())
def test_what_was_packed_comes_out(content: bytes, how: str, level: int, seekable: bool) -> None:
    assert content_of(pack(content, how, level), seekable) == (content, False)


@given(st.lists(CONTENT, min_size=1, max_size=5).filter(lambda parts: not is_packed(parts[0] + b"    ")), st.sampled_from(["gzip", "zstd"]))
def test_pieces_packed_one_by_one_come_out_as_one(parts: list[bytes], how: str) -> None:
    assert content_of(b"".join(pack(part, how, 6) for part in parts), True) == (b"".join(parts), False)


@given(CONTENT.filter(lambda content: not is_packed(content)), st.sampled_from(["gzip", "zstd", "zip"]), st.data())
def test_a_cut_container_gives_a_beginning_and_a_warning_or_an_error(content: bytes, how: str, data: st.DataObject) -> None:
    packed = pack(content, how, 6)
    cut = packed[: data.draw(st.integers(5, len(packed) - 1))]
    try:
        kept, warned = content_of(cut, data.draw(st.booleans()))
    except ProfileError:
        return
    assert content.startswith(kept)
    assert warned


@given(CONTENT.filter(lambda content: not is_packed(content)), st.data())
def test_a_changed_byte_in_a_gzip_loses_nothing_that_inflates(content: bytes, data: st.DataObject) -> None:
    packed = bytearray(gzip.compress(content))
    at = data.draw(st.integers(10, len(packed) - 9))
    packed[at] ^= data.draw(st.integers(1, 255))
    inflate, right = zlib.decompressobj(-15), b""
    for i in range(10, len(packed)):
        try:
            right += inflate.decompress(bytes(packed[i : i + 1]))
        except zlib.error:
            break
        if inflate.eof:
            break
    try:
        kept, warned = content_of(bytes(packed), True)
    except ProfileError:
        assert not right or is_packed(right + b"    ") or len(right) > 6 * MEMORY
        return
    assert is_packed(right + b"    ") or kept == right
    assert warned or kept == content


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06", b"\x50\x2a\x4d\x18"]),
    st.booleans(),
)
def test_any_bytes_end_in_content_or_in_a_profile_error(tail: bytes, head: bytes, seekable: bool) -> None:
    try:
        content, _ = content_of(head + tail, seekable)
    except ProfileError:
        return
    assert len(content) <= 6 * MEMORY


@given(CONTENT, st.integers(1, 5000))
def test_isal_and_zlib_give_the_same_in_reads_of_any_size(content: bytes, size: int) -> None:
    packed = zlib.compress(content, wbits=-15) + b"behind"
    for decoder in (deflate._decoder(), deflate._ZlibDecoder()):
        stream = deflate.Deflate(deflate.Pushback(io.BytesIO(packed)))
        stream._decoder = decoder
        parts = list(iter(partial(stream.read, size), b""))
        assert b"".join(parts) == content
        assert all(len(part) <= size for part in parts)
        assert stream.state is deflate.State.DONE
        assert stream._below.read() == b"behind"
        assert stream.crc == zlib.crc32(content)


def test_the_property_tests_reach_isal() -> None:
    if deflate._igzip is None:
        pytest.skip("no isal on this machine")
    assert type(deflate._decoder()).__name__ == "IgzipDecompressor"
