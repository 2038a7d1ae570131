"""What a user's word stands for: a file, a folder's files, a pattern's matches, standard input, or what is behind a URL."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator

import msgspec

from roofterm_parsers.errors import ProfileError
from roofterm_parsers.inputs import STDIN, Input, unreadable
from roofterm_parsers.remote import is_url, list_remote, local_part

MOST_FILES = 20_000
MOST_DEPTH = 12
_PASSED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "lost+found"}
_PATTERN = re.compile(r"[*?\[]")


class Listing(msgspec.Struct, frozen=True):
    """The files that a word stands for. `folder` is the folder it names; None where the user named the files themselves."""

    files: list[Input]
    folder: str | None = None


def list_named(word: str) -> list[Listing]:
    """Listings of what the user typed; raises ProfileError if there is no such thing."""
    if word == STDIN:
        return [Listing([Input(path=STDIN, location=STDIN, kind="pipe")])]
    if is_url(word):
        place = local_part(word)
        if place is None:
            return [_remote(word)]
        word = place
    found = _local(word)
    if found is None and word.startswith("~"):
        found = _local(os.path.expanduser(word))
    if found is not None:
        return [found]
    matches = sorted(glob.glob(os.path.expanduser(word), recursive=True), key=natural) if _PATTERN.search(word) else []
    listings = [listing for match in matches if (listing := _local(match)) is not None]
    if not listings:
        raise ProfileError(f"{word}: " + ("no file matches" if _PATTERN.search(word) else "no such file or folder"), word)
    return listings


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key in which rank10 comes after rank9."""
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in re.findall(r"[0-9]+|[^0-9]+", text)]


def _local(path: str) -> Listing | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:  # a zero byte in the name
        raise ProfileError(f"{path!r}: no such file or folder", path) from error
    except OSError as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        files = sorted(_walk(path, path), key=lambda file: natural(file.path))
        return Listing(files, path)
    return Listing([_file(path, status)])


def _file(path: str, status: os.stat_result) -> Input:
    location = os.path.abspath(path)
    if stat.S_ISREG(status.st_mode):
        return Input(path=path, location=location, bytes=status.st_size, mtime_ns=status.st_mtime_ns)
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode):
        return Input(path=path, location=location, kind="pipe")
    raise ProfileError(f"{path}: is neither a file nor a pipe", path)


def _walk(folder: str, named: str) -> Iterator[Input]:
    """The regular files under a folder; folders that hold programs or start with a dot are passed by."""
    seen: set[tuple[int, int]] = set()
    count = 0
    stack = [(folder, 0)]
    while stack:
        place, depth = stack.pop()
        try:
            status = os.stat(place)
            entries = list(os.scandir(place))
        except OSError as error:
            if place == folder:
                raise unreadable(named, error) from error
            continue
        if (status.st_dev, status.st_ino) in seen:  # a link back up
            continue
        seen.add((status.st_dev, status.st_ino))
        for entry in entries:
            count += 1
            if count > MOST_FILES:
                raise ProfileError(f"{named}: holds more than {MOST_FILES:,} files; name a folder nearer to the profiles", named)
            if entry.name.startswith(".") or entry.name in _PASSED_FOLDERS:
                continue
            try:
                if entry.is_dir():
                    if depth < MOST_DEPTH:
                        stack.append((entry.path, depth + 1))
                elif entry.is_file():
                    yield _file(entry.path, entry.stat())
            except OSError:  # gone meanwhile, or a link to nowhere
                continue


def _remote(url: str) -> Listing:
    found = list_remote(url)
    if not found:
        raise ProfileError(f"{url}: no file there", url)
    if len(found) > MOST_FILES:
        raise ProfileError(f"{url}: holds more than {MOST_FILES:,} files; name a folder nearer to the profiles", url)
    files = [Input(path=path, location=path, kind="remote", bytes=size, mtime_ns=changed) for path, size, changed in found]
    if len(files) == 1 and files[0].path == url:
        return Listing(files)
    folder = url if not _PATTERN.search(url) else None
    return Listing(sorted(files, key=lambda file: natural(file.path)), folder)
