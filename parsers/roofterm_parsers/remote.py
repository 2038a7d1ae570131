"""Profiles behind a URL, through fsspec (the extra `remote`): listing, matching and opening."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from roofterm_parsers.errors import ProfileError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)")
_BLOCK_BYTES = 4 << 20
_BACK_ENDS = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "ssh": "paramiko",
    "sftp": "paramiko",
    "http": "aiohttp",
    "https": "aiohttp",
}
_BACK_ENDS |= {"abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "hdfs": "pyarrow", "hf": "huggingface_hub"}


def is_url(path: str) -> bool:
    """True for `s3://...`, `https://...`, and fsspec's chains `zip://a.json::s3://...`."""
    return _URL.match(path) is not None


def local_part(url: str) -> str | None:
    """The path of a `file://` URL, which needs no fsspec; None for any other."""
    if not url.lower().startswith("file://"):
        return None
    from urllib.parse import unquote

    path = unquote(url[len("file://") :])
    return path.removeprefix("localhost") if path.startswith("localhost/") else path


def list_remote(url: str) -> list[tuple[str, int | None, int | None]]:
    """(URL, bytes, mtime ns) of every file that a URL names: itself, the files under it, or those that match its pattern."""
    with _told(url):
        fs, path = _file_system(url)
        if any(c in path for c in "*?[") and not _exists(fs, path):
            names = sorted(str(name) for name in fs.glob(path))
            infos = [fs.info(name) for name in names]
        elif _is_folder(fs, path):
            infos = list(fs.find(path, detail=True).values())
        else:
            return [(url, *_facts(_info(fs, path)))]
        return [(_url_of(fs, url, info["name"]), *_facts(info)) for info in infos if info.get("type") != "directory"]


def _info(fs: Any, path: str) -> dict[str, Any]:
    info: dict[str, Any] = fs.info(path)
    return info


def open_remote(url: str, path: str) -> IO[bytes]:
    """Open the file behind a URL for reading from its start to its end."""
    with _told(path):
        fs, place = _file_system(url)
        return cast("IO[bytes]", _Told(fs.open(place, "rb", block_size=_BLOCK_BYTES), path, fs))


class _Told:
    """A remote file whose library's errors are told as ProfileError, also while it is read."""

    def __init__(self, file: IO[bytes], path: str, file_system: Any) -> None:
        self._file = file
        self._path = path
        self._file_system = file_system  # a zip in a chained URL is closed with its file system

    def read(self, size: int = -1) -> bytes:
        with _told(self._path):
            return self._file.read(size)

    def close(self) -> None:
        self._file.close()


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except ProfileError:
        raise
    except FileNotFoundError as error:
        raise ProfileError(f"{path}: no such file or folder", path) from error
    except ImportError as error:
        raise ProfileError(_missing(path, error), path) from error
    # Each back end raises its own library's errors (botocore, aiohttp, paramiko), which share no base class.
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ProfileError(f"{path}: cannot be read: {reason}", path) from error


def _missing(path: str, error: ImportError) -> str:
    scheme = re.split(r"://|::", path, maxsplit=1)[0].lower()
    if error.name == "fsspec":
        return f"{path}: URLs need fsspec: pip install 'roofterm[remote]'"
    back_end = _BACK_ENDS.get(scheme) or error.name or "its fsspec back end"
    return f"{path}: {scheme}:// needs {back_end}: pip install 'roofterm[remote]' {back_end}"


def _file_system(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    fs, path = url_to_fs(url)
    return fs, path


def _exists(fs: Any, path: str) -> bool:
    return bool(fs.exists(path))


def _is_folder(fs: Any, path: str) -> bool:
    # Over http every page "is a folder" of its links: only what ends with a slash is meant as one.
    if "http" in fs.protocol or "https" in fs.protocol:
        return path.endswith("/")
    return bool(fs.isdir(path))


def _url_of(fs: Any, url: str, name: str) -> str:
    if is_url(name):
        return name
    chain = url.partition("::")[2]
    full = str(fs.unstrip_protocol(name))
    return f"{full}::{chain}" if chain else full


def _facts(info: dict[str, Any]) -> tuple[int | None, int | None]:
    size = info.get("size")
    changed: Any = info.get("mtime") or info.get("LastModified") or info.get("created")
    seconds = changed.timestamp() if hasattr(changed, "timestamp") else changed
    return (size if isinstance(size, int) else None, int(seconds * 1e9) if isinstance(seconds, int | float) else None)
