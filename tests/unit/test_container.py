"""Containers are told by content, streamed, bounded, and give what they hold when they are damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import zipfile
import zlib

import pytest
import zstandard

from roofterm_parsers import container, deflate
from roofterm_parsers.container import Stream, container_of, open_stream
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.inputs import Raw

GB = 1 << 30
TEXT = b'{"traceEvents": [' + b",".join(b'{"ph": "X", "name": "op %d", "ts": %d}' % (i, i * i % 9973) for i in range(4000)) + b"]}"


def stream_of(data: bytes, *, seekable: bool = True, max_memory: int = GB) -> Stream:
    return open_stream(Raw(io.BytesIO(data), "file", lambda _: None, seekable=seekable), "file", max_memory)


def codes(stream: Stream) -> list[str]:
    return [warning.code for warning in stream.warnings]


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "zstd": zstandard.compress(TEXT),
    "zip": zipped({"trace.json": TEXT}),
}


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("seekable", [True, False])
def test_the_content_comes_out_whole_and_without_a_warning(kind: str, seekable: bool) -> None:
    stream = stream_of(PACKED[kind], seekable=seekable)
    assert stream.container == kind
    assert stream.read() == TEXT
    assert stream.warnings == []
    assert stream.bytes_expanded == len(TEXT)


@pytest.mark.parametrize("kind", PACKED)
def test_a_read_gives_exactly_what_was_asked_for_until_the_end(kind: str) -> None:
    stream = stream_of(PACKED[kind])
    parts = [stream.read(1000) for _ in range(len(TEXT) // 1000 + 1)]
    assert [len(part) for part in parts] == [1000] * (len(TEXT) // 1000) + [len(TEXT) % 1000]
    assert b"".join(parts) == TEXT
    assert stream.read(1000) == b""
    assert stream.ended


def test_readinto_fills_the_buffer() -> None:
    stream = stream_of(PACKED["gzip"])
    buffer = bytearray(100)
    assert stream.readinto(memoryview(buffer)) == 100
    assert bytes(buffer) == TEXT[:100]


def test_a_peek_takes_nothing() -> None:
    stream = stream_of(PACKED["zstd"])
    assert stream.peek(20) == TEXT[:20]
    assert stream.peek(40) == TEXT[:40]
    assert stream.bytes_expanded == 0
    assert stream.read() == TEXT


def test_bytes_of_the_container_are_counted_as_they_lie_on_disk() -> None:
    stream = stream_of(PACKED["gzip"])
    stream.read()
    assert stream.bytes_read == len(PACKED["gzip"])


@pytest.mark.parametrize(
    ("data", "containers"),
    [
        (gzip.compress(gzip.compress(TEXT)), ["gzip", "gzip"]),
        (zipped({"a.json.gz": gzip.compress(TEXT)}), ["zip", "gzip"]),
        (zstandard.compress(zipped({"a.json": TEXT}, zipfile.ZIP_STORED)), ["zstd", "zip"]),
    ],
)
def test_a_container_in_a_container_is_unpacked(data: bytes, containers: list[str]) -> None:
    stream = stream_of(data)
    assert stream.containers == containers
    assert stream.read() == TEXT


def test_packed_five_times_over_is_refused() -> None:
    data = TEXT
    for _ in range(5):
        data = gzip.compress(data)
    with pytest.raises(ProfileError, match="packed more than 4 times"):
        stream_of(data)


@pytest.mark.parametrize("kind", PACKED)
def test_a_byte_order_mark_is_left_out(kind: str) -> None:
    text = b"\xef\xbb\xbf" + TEXT
    packed = {"plain": text, "gzip": gzip.compress(text), "zstd": zstandard.compress(text), "zip": zipped({"t.json": text})}
    stream = stream_of(packed[kind])
    assert stream.has_mark
    assert stream.read() == TEXT


def test_an_empty_file_is_a_plain_one_of_no_bytes() -> None:
    stream = stream_of(b"")
    assert (stream.container, stream.read()) == ("plain", b"")


@pytest.mark.parametrize("head", [b"BZh9", b"\xfd7zXZ", b"{", b"\x1f\x8b\x00", b"\x1f", b"PK"])
def test_other_beginnings_are_no_containers(head: bytes) -> None:
    assert container_of(head) is None


# gzip


def test_all_members_are_read() -> None:
    parts = [TEXT[:999], TEXT[999:5000], TEXT[5000:]]
    stream = stream_of(b"".join(gzip.compress(part) for part in parts))
    assert stream.read() == TEXT
    assert stream.warnings == []


def test_header_fields_are_passed_over() -> None:
    packed = io.BytesIO()
    with gzip.GzipFile("a long file name.json", "wb", fileobj=packed) as file:
        file.write(TEXT)
    data = packed.getvalue()
    flags = 4 | 8 | 16 | 2  # extra field, name, comment, header checksum
    extra = b"\x05\x00hello"
    whole = data[:3] + bytes([flags]) + data[4:10] + extra + data[10:].replace(b".json\0", b".json\0a comment\0\x12\x34", 1)
    assert stream_of(whole).read() == TEXT


@pytest.mark.parametrize("zeros", [1, 511, 300_000])
def test_zero_padding_is_silent(zeros: int) -> None:
    stream = stream_of(PACKED["gzip"] + b"\0" * zeros)
    assert stream.read() == TEXT
    assert stream.warnings == []


def test_a_member_behind_zero_padding_is_read() -> None:
    stream = stream_of(gzip.compress(TEXT[:500]) + b"\0" * 512 + gzip.compress(TEXT[500:]))
    assert stream.read() == TEXT


def test_trailing_garbage_is_left_out_and_counted() -> None:
    stream = stream_of(PACKED["gzip"] + b"garbage!")
    assert stream.read() == TEXT
    assert codes(stream) == ["trailing"]
    assert "8 bytes" in stream.warnings[0].message


def test_a_wrong_checksum_keeps_the_content_and_says_so() -> None:
    data = bytearray(PACKED["gzip"])
    data[-8] ^= 1
    stream = stream_of(bytes(data))
    assert stream.read() == TEXT
    assert codes(stream) == ["checksum"]


def test_a_file_that_ends_in_its_trailer_keeps_everything() -> None:
    stream = stream_of(PACKED["gzip"][:-3])
    assert stream.read() == TEXT
    assert codes(stream) == ["cut"]


@pytest.mark.parametrize("size", range(2, 10))
def test_a_file_that_ends_in_its_header_is_refused(size: int) -> None:
    with pytest.raises(ProfileError, match=r"file: the gzip file ends within its header.*truncated"):
        stream_of(PACKED["gzip"][:size])


def test_an_empty_gzip_is_refused_as_empty() -> None:
    with pytest.raises(ProfileError, match="empty gzip file: 0 bytes"):
        stream_of(gzip.compress(b""))


@pytest.mark.parametrize("seekable", [True, False])
def test_a_cut_gzip_gives_all_that_inflates(seekable: bool) -> None:
    packed = PACKED["gzip"]
    for size in range(30, len(packed) - 8, len(packed) // 60):
        right = zlib.decompressobj(31).decompress(packed[:size])
        if not right:
            with pytest.raises(ProfileError, match="truncated"):
                stream_of(packed[:size], seekable=seekable)
            continue
        stream = stream_of(packed[:size], seekable=seekable)
        kept = stream.read()
        assert kept == right if seekable else right.startswith(kept) and len(right) - len(kept) < 600
        assert codes(stream) == ["cut"]
        assert "truncated" in stream.warnings[0].message


def damaged(data: bytes, seed: int) -> bytes:
    """The data with one byte changed, beyond the header."""
    chance = random.Random(seed)
    at = chance.randrange(10, len(data))
    return data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :]


def slowly_inflated(data: bytes) -> tuple[bytes, bool]:
    """What zlib gives for the first member byte by byte, and whether its end was reached."""
    inflate, kept = zlib.decompressobj(-15), b""
    for i in range(10, len(data)):
        try:
            kept += inflate.decompress(data[i : i + 1])
        except zlib.error:
            return kept, False
        if inflate.eof:
            return kept, True
    return kept, False


@pytest.mark.parametrize("seed", range(60))
def test_a_corrupt_gzip_gives_what_inflates_byte_by_byte_up_to_the_damage(seed: int) -> None:
    data = damaged(PACKED["gzip"], seed)
    right, ended = slowly_inflated(data)
    if not right:
        with pytest.raises(ProfileError, match=r"corrupt|truncated"):
            stream_of(data)
        return
    stream = stream_of(data)
    assert stream.read() == right
    assert codes(stream)[0] == ("checksum" if ended and right != TEXT else "cut") or right == TEXT
    assert codes(stream)


def test_a_corrupt_pipe_gives_nearly_as_much() -> None:
    """A pipe cannot be read again: what isal had decoded of the block with the damage is lost, and blocks are small at first."""
    data = PACKED["gzip"][:6000] + b"\xff" * 300
    right, _ = slowly_inflated(data)
    got = stream_of(data, seekable=False).read()
    assert right.startswith(got)
    assert len(right) - len(got) <= max(4096, len(right) // 16)


def test_zlib_stands_in_where_isal_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deflate, "_igzip", None)
    monkeypatch.setattr(deflate, "_ERRORS", (zlib.error,))
    assert stream_of(PACKED["gzip"]).read() == TEXT
    cut = PACKED["gzip"][:7000]
    assert stream_of(cut).read() == zlib.decompressobj(31).decompress(cut)
    corrupt = damaged(PACKED["gzip"], 3)
    assert stream_of(corrupt).read() == slowly_inflated(corrupt)[0]


# zstd


def test_all_frames_are_read_and_skippable_ones_passed_over() -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    stream = stream_of(skippable + zstandard.compress(TEXT[:700]) + skippable + zstandard.compress(TEXT[700:]))
    assert stream.container == "zstd"
    assert stream.read() == TEXT
    assert stream.warnings == []


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_cut_zstd_gives_its_whole_blocks_and_a_warning(share: float) -> None:
    text = TEXT * 6  # several blocks of 128 KiB
    packed = zstandard.compress(text)
    cut = packed[: int(len(packed) * share)]
    right = zstandard.ZstdDecompressor().decompressobj().decompress(cut)
    if not right:
        with pytest.raises(ProfileError, match="truncated"):
            stream_of(cut)
        return
    stream = stream_of(cut)
    assert stream.read() == right
    assert codes(stream) == ["cut"]


def test_a_corrupt_zstd_gives_the_blocks_before_the_damage() -> None:
    chance = random.Random(1)
    text = bytes(chance.choices(b"abcdefghijklmnop", k=1_000_000))
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(text))
    packed[len(packed) // 2] ^= 0x55
    stream = stream_of(bytes(packed))
    kept = stream.read()
    assert codes(stream)[0] == "cut"
    assert text.startswith(kept[: len(text) // 2 - 131_072])
    assert len(kept) >= len(text) // 2 - 131_072


def test_the_blocks_before_a_damage_in_one_small_piece_are_not_lost() -> None:
    text = b"\0" * (1 << 20)  # eight blocks in 50 bytes
    packed = zstandard.compress(text)
    stream = stream_of(packed[:-8] + b"\xff" * 8)
    assert len(stream.read()) >= 131_072
    assert codes(stream) == ["cut"]


def test_bytes_behind_zstd_are_left_out_and_counted() -> None:
    stream = stream_of(PACKED["zstd"] + b"garbage!")
    assert stream.read() == TEXT
    assert codes(stream) == ["trailing"]


# zip


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_of_each_usual_method_opens(method: int) -> None:
    assert stream_of(zipped({"sub/rank0.pt.trace.json": TEXT}, method)).read() == TEXT


def test_what_a_mac_adds_to_a_zip_is_passed_over() -> None:
    data = zipped({"__MACOSX/._t.json": b"x", ".DS_Store": b"x", "t.json": TEXT, "README": b"read me"})
    assert stream_of(data).read() == TEXT


def test_a_zip_with_two_traces_names_them() -> None:
    with pytest.raises(ProfileError, match=r"zip holds 2 files \(a.json, b.json\); unpack it"):
        stream_of(zipped({"a.json": TEXT, "b.json": TEXT}))


def test_an_empty_zip_is_refused() -> None:
    with pytest.raises(ProfileError, match="zip"):
        stream_of(zipped({}))


def test_a_torch_checkpoint_is_told_from_a_zipped_trace() -> None:
    with pytest.raises(ProfileError, match="PyTorch checkpoint"):
        stream_of(zipped({"archive/data.pkl": b"\x80\x02", "archive/version": b"3"}))


def test_an_unknown_method_is_refused_by_its_number() -> None:
    with pytest.raises(ProfileError, match="method 12"):
        stream_of(zipped({"a.json": TEXT}, zipfile.ZIP_BZIP2))


def test_an_encrypted_zip_is_refused() -> None:
    data = bytearray(zipped({"a.json": TEXT}))
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ProfileError, match="encrypted"):
        stream_of(bytes(data))


def test_a_zip_without_its_directory_gives_its_first_file() -> None:
    whole = zipped({"a.json": TEXT})
    stream = stream_of(whole[: whole.rindex(b"PK\x01\x02")])
    assert stream.read() == TEXT
    assert codes(stream) == ["cut"]


def test_a_zip_that_lost_bytes_in_its_middle_gives_what_inflates() -> None:
    """Its directory then points before the start of the file."""
    whole = zipped({"a.json": TEXT})
    stream = stream_of(whole[:5000] + whole[5013:])
    kept = stream.read()
    assert kept[:5000] == TEXT[:5000]
    assert codes(stream)[0] == "cut"


def test_a_file_without_a_name_in_a_zip_is_a_file() -> None:
    data = bytearray(zipped({"a": TEXT}))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 28 : directory + 30] = bytes(2)  # length of the name
    data[directory + 30 : directory + 32] = (1).to_bytes(2, "little")  # of what follows it: the name
    assert stream_of(bytes(data)).read() == TEXT


def test_a_zip_cut_in_its_file_gives_what_inflates() -> None:
    whole = zipped({"a.json": TEXT})
    stream = stream_of(whole[:5000])
    kept = stream.read()
    assert TEXT.startswith(kept)
    assert len(kept) > 5000
    assert codes(stream) == ["cut", "cut"]


def test_a_wrong_checksum_in_a_zip_is_told() -> None:
    data = bytearray(zipped({"a.json": TEXT}, zipfile.ZIP_STORED))
    data[100] ^= 1
    stream = stream_of(bytes(data))
    assert len(stream.read()) == len(TEXT)
    assert codes(stream) == ["checksum"]


# bounds


def test_more_text_than_the_memory_can_hold_ends_in_a_sentence() -> None:
    stream = stream_of(gzip.compress(b"a" * 7_000_000), max_memory=1_000_000)
    with pytest.raises(ProfileError, match=r"file: holds more than 6.0 MB, too much for 1.0 MB of memory; raise --max-memory"):
        stream.read()


@pytest.mark.parametrize(
    "pack", [gzip.compress, zstandard.compress, lambda data: zipped({"a.json": data}), lambda data: gzip.compress(gzip.compress(data))]
)
def test_a_bomb_ends_in_a_sentence(pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "BOMB_BYTES", 4_000_000)
    stream = stream_of(pack(b"\0" * 8_000_000))
    with pytest.raises(ProfileError, match="decompression bomb"):
        stream.read()


def test_a_trace_that_shrinks_much_is_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "BOMB_BYTES", 100_000)
    text = TEXT[:2000] * 40
    assert len(text) / len(gzip.compress(text)) > 40
    assert stream_of(gzip.compress(text)).read() == text


def test_other_packers_are_not_unpacked() -> None:
    assert stream_of(bz2.compress(TEXT)).container == "plain"
