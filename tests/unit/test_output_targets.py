"""What `-o` may name besides a file: devices and pipes stay what they are."""

from __future__ import annotations

import os
import stat
from threading import Thread

import pytest

from roofterm.cli.errors import UsageError
from roofterm.cli.output import write_file


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"answer")
    reader.join(5)
    assert heard == [b"answer"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        write_file(tmp_path, b"answer")


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "answer.json"
    path.write_bytes(b"earlier")
    write_file(path, b"answer")
    assert path.read_bytes() == b"answer"
    assert list(tmp_path.iterdir()) == [path]
