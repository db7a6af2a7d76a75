"""Waiting for descriptors, also those with numbers that `select` does not have."""

from __future__ import annotations

import ast
import os
import socket
import time
from pathlib import Path

import pytest

import deskhand
from deskhand._core.readiness import ready
from faults.helpers import crowded


def test_descriptors_above_1023() -> None:
    with crowded():
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        with ours, theirs, os.fdopen(reading, "rb"), os.fdopen(writing, "wb"):
            assert min(ours.fileno(), reading) > 1023
            assert ready([ours, reading], timeout=0) == set()
            assert ready([ours], [ours], timeout=0) == {ours.fileno()}
            theirs.send(b"x")
            assert ready([ours, reading]) == {ours.fileno()}
            os.write(writing, b"x")
            assert ready([ours, reading]) == {ours.fileno(), reading}


def test_an_end_is_told_and_a_wait_ends() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        begun = time.monotonic()
        assert ready([ours], timeout=0.05) == set()
        assert time.monotonic() - begun >= 0.05
        assert ready([ours], timeout=-1) == set()
        theirs.close()
        assert ready([ours], timeout=20) == {ours.fileno()}
    with pytest.raises(ValueError, match="negative"):
        ready([ours], timeout=0)


def test_nothing_uses_select() -> None:
    """It fails with "filedescriptor out of range" in a process that has many files open."""
    package = Path(deskhand.__file__).parent
    found = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "select" and ast.unparse(node) == "select.select"
    ]
    assert found == []
