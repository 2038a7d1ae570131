"""Mending the text of one damaged event: what writers of traces are known to break, and no more than that.

Steps are tried in this order, each on top of the last, until the text is JSON: bytes that are not UTF-8; quotes,
backslashes and control characters that were not escaped; words that are no JSON (inf, nan, N/A); commas too many; the
lost quote of a key. What stays broken is read by its outer fields alone, if those are whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

LONGEST = 1 << 20
"""Longer texts are not mended: they are two events that lost what stood between them, or no events at all."""

_BAD_WORD = re.compile(r"([:\[,]\s*)(?:[-+]?(?:inf(?:inity)?|nan)|N/A|None|undefined)(?=\s*[,}\]])", re.IGNORECASE)
_BARE_BOOL = re.compile(r"([:\[,]\s*)(True|False)(?=\s*[,}\]])")
_DOUBLE_COMMA = re.compile(r",\s*(?=[,}\]])")
_FIRST_COMMA = re.compile(r"([{\[])\s*,")
_KEY_WITHOUT_OPENING = re.compile(r'([{,]\s*)([A-Za-z_][\w %.()/-]*)"\s*:')
_KEY_WITHOUT_CLOSING = re.compile(r'([{,]\s*"[A-Za-z_][\w %.()/-]*)\s*:(?=\s*[\d"\[{tfn-])')
_AFTER_KEY = re.compile(r"\s*:")
_AFTER_VALUE = re.compile(r'\s*(?:$|(?:[}\]]\s*)+(?:$|,)|,\s*(?:$|[}\]]|"(?:[^"\\\n]|\\.){1,100}"\s*:|(?:[A-Za-z_][\w %.-]*)"\s*:))')
_AFTER_ITEM = re.compile(r'\s*(?:$|\]\s*[,}\]]|,\s*(?:$|\]|"|-?\d|\[|\{|true|false|null))')
_STRUCTURE = re.compile(r'["{}\[\],:]')
_TO_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|[\\"\x00-\x1f]')
"""an escape as it should be, or something that should have been one"""
_IN_PATH = re.compile(r'\\"|\\\\|[\\"\x00-\x1f]')
_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_OUTER = {
    key: re.compile(rf'"{key}"\s*:\s*("(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*[,}}\n]')
    for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id")
}


def mend(text: bytes, accepts: Callable[[bytes], bool]) -> bytes | None:
    """The event in `text` as valid JSON, or None if it cannot be mended. `accepts` says whether a text is an event."""
    if len(text) > LONGEST:
        return None
    current = text.decode("utf-8", "replace")
    for step in (_same, _requote, _bad_words, _commas, _keys, _requote):
        changed = step(current)
        if changed != current or step is _same:
            current = changed
            encoded = current.encode("utf-8", "replace")
            if accepts(encoded):
                return encoded
    return None


def outer_fields(text: bytes) -> bytes | None:
    """The event's own fields without its arguments, if at least its phase and time are whole."""
    if len(text) > LONGEST:
        return None
    seen = text.decode("utf-8", "replace")
    brace = seen.find('"args"')
    found = {}
    for key, pattern in _OUTER.items():
        match = pattern.search(seen if brace < 0 or key != "name" else seen[:brace]) or pattern.search(seen)
        if match:
            found[key] = match.group(1)
    if "ph" not in found or "ts" not in found:
        return None
    encoded = ("{" + ",".join(f'"{key}":{value}' for key, value in found.items()) + "}").encode("utf-8", "replace")
    try:
        msgspec.json.decode(encoded)
    except msgspec.DecodeError:
        return None
    return encoded


def _same(text: str) -> str:
    return text


def _bad_words(text: str) -> str:
    return _BARE_BOOL.sub(lambda m: m[1] + m[2].lower(), _BAD_WORD.sub(r"\1null", _BAD_WORD.sub(r"\1null", text)))


def _commas(text: str) -> str:
    return _FIRST_COMMA.sub(r"\1", _DOUBLE_COMMA.sub("", text))


def _keys(text: str) -> str:
    return _KEY_WITHOUT_CLOSING.sub(r'\1":', _KEY_WITHOUT_OPENING.sub(r'\1"\2":', text))


def _requote(text: str) -> str:
    """Escape what stands unescaped inside strings; a quote ends a string only if what follows could follow one."""
    out: list[str] = []
    closers: list[str] = []
    at, size = 0, len(text)
    expects_key = False
    while at < size:
        found = _STRUCTURE.search(text, at)
        if found is None:
            out.append(text[at:])
            break
        out.append(text[at : found.start()])
        at = found.start()
        char = text[at]
        if char == '"':
            in_list = bool(closers) and closers[-1] == "]"
            end = _end_of_string(text, at + 1, is_key=expects_key and not in_list, in_list=in_list)
            out.append('"' + _escape(text[at + 1 : end]) + '"')
            at = end + 1
            continue
        if char == "{":
            closers.append("}")
            expects_key = True
        elif char == "[":
            closers.append("]")
        elif char in "}]" and closers:
            closers.pop()
        elif char == ",":
            expects_key = bool(closers) and closers[-1] == "}"
        elif char == ":":
            expects_key = False
        out.append(char)
        at += 1
    return "".join(out)


def _end_of_string(text: str, at: int, *, is_key: bool, in_list: bool) -> int:
    """Where the string that begins at `at` ends."""
    follows = _AFTER_KEY if is_key else _AFTER_ITEM if in_list else _AFTER_VALUE
    first = -1
    while True:
        at = text.find('"', at)
        if at < 0:
            return first if first >= 0 else len(text)
        if first < 0:
            first = at
        escaped = _backslashes_before(text, at) % 2 == 1
        if follows.match(text, at + 1) and not escaped:
            return at
        at += 1


def _backslashes_before(text: str, at: int) -> int:
    count = 0
    while at > count and text[at - count - 1] == "\\":
        count += 1
    return count


def _escape(inside: str) -> str:
    """The inside of a string with everything escaped that has to be."""
    inside = _SURROGATE.sub("\ufffd", inside)
    if any(m[0] == "\\" for m in _TO_ESCAPE.finditer(inside)):  # a path: what looks like an escape is none either
        return _IN_PATH.sub(lambda m: m[0] if len(m[0]) > 1 else _escaped(m[0]), inside)
    return _TO_ESCAPE.sub(lambda m: m[0] if len(m[0]) > 1 else _escaped(m[0]), inside)


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return f"\\u{ord(char):04x}"
