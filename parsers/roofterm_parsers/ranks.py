"""Which rank of a job each file is: by its own word, else by its name or folder, else by its place among the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

_END = r"[-_ ]?(\d{1,6})(?![0-9a-z])"
_START = r"(?<![a-z0-9])"
_WORDS = (
    re.compile(rf"{_START}(?:global[-_ ]?)?rank(?:[-_ ]?)(\d{{1,6}})(?![0-9])", re.IGNORECASE),
    re.compile(rf"{_START}worker{_END}", re.IGNORECASE),
    re.compile(rf"(?:^|[-_.])r{_END}", re.IGNORECASE),
)
"""Names that mean a rank wherever they stand."""
_WEAK_WORDS = tuple(
    re.compile(rf"{_START}{word}{_END}", re.IGNORECASE) for word in ("tp", "local[-_ ]?rank", "gpu", "device", "node", "host")
)
"""Names that number the files of a folder, if they number all of them differently."""


def rank_in(path: str) -> int | None:
    """The rank that a file's name or the folder around it states: rank-3, rank_3, rank3, worker3, _r3_; None if neither does."""
    for part in _parts(path):
        for word in _WORDS:
            found = word.search(part)
            if found:
                return int(found[1])
    return None


def assign_ranks(stated: Sequence[int | None], paths: Sequence[str]) -> tuple[list[int | None], str | None]:
    """Ranks of the sources of one profile, and a sentence if they had to be numbered here.

    `stated`: what each file says itself (distributedInfo). A file alone keeps what it or its name says, or None. Among
    several, each gets a rank of its own: stated, else by name, else by its place in the order of the paths.
    """
    if len(paths) == 1:
        return [stated[0] if stated[0] is not None else rank_in(paths[0])], None
    if len(set(stated)) == len(stated) and None not in stated:
        return list(stated), None
    for named in _numberings(paths):
        ranks = [own if own is not None and stated.count(own) == 1 else name for own, name in zip(stated, named, strict=True)]
        if None not in ranks and len(set(ranks)) == len(ranks):
            return ranks, None
    return _by_order(stated, paths)


def missing_ranks(ranks: Sequence[int | None], world_sizes: Sequence[int | None]) -> str | None:
    """A sentence that names the ranks of the job that are not here; None if all are, or if the files do not tell how many there are."""
    sizes = {size for size in world_sizes if size is not None}
    known = [rank for rank in ranks if rank is not None]
    if len(sizes) != 1 or len(known) < len(ranks) or not known:
        return None
    (size,) = sizes
    absent = sorted(set(range(size)) - set(known))
    if not absent or max(known) >= size:
        return None
    return f"{len(absent)} of the job's {size} ranks {'is' if len(absent) == 1 else 'are'} not here: {number_ranges(absent)}"


def number_ranges(numbers: Sequence[int]) -> str:
    """Numbers as people list them: 0-3, 7."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _numberings(paths: Sequence[str]) -> list[list[int | None]]:
    by_word = [[_number(path, word) for path in paths] for word in (*_WORDS, *_WEAK_WORDS)]
    return [[rank_in(path) for path in paths], *by_word]


def _number(path: str, word: re.Pattern[str]) -> int | None:
    return next((int(found[1]) for part in _parts(path) if (found := word.search(part))), None)


def _by_order(stated: Sequence[int | None], paths: Sequence[str]) -> tuple[list[int | None], str]:
    ranks: list[int | None] = []
    for own in stated:
        ranks.append(own if own is not None and own not in ranks else None)
    free = (rank for rank in count() if rank not in ranks)
    doubled = sorted({own for own in stated if own is not None and stated.count(own) > 1})
    numbered = [path for rank, path in zip(ranks, paths, strict=True) if rank is None]
    ranks = [next(free) if rank is None else rank for rank in ranks]
    why = f"several files say that they are rank {doubled[0]}" if doubled else "the files do not say which rank they are"
    names = ", ".join(path.rpartition("/")[2] for path in numbered[:3]) + (", ..." if len(numbered) > 3 else "")
    return ranks, f"{why}: numbered in the order of their names ({names})"


def _parts(path: str) -> list[str]:
    """File name, and the folder around it: nearer words count first."""
    parts = path.replace("\\", "/").split("/")
    return parts[:-3:-1]
