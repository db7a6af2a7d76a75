"""What is in an image: it is built once, its packages are recorded, and what another build has is named."""

from __future__ import annotations

import io
import secrets
import tarfile
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import left
from deskhand.launchers.docker import images
from deskhand.launchers.docker.images import build_image, check_image, compare_packages, context, recorded_packages
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine

PACKAGES = "usr/local/lib/deskhand/packages"


@pytest.fixture
def name(engine: Engine) -> Iterator[str]:
    """Of an image that is removed in the end."""
    name = f"deskhand-test/{secrets.token_hex(6)}"
    yield name
    for found in engine.api.images(name):
        engine.api.remove_image(found["RepoTags"][0])


def changed(engine: Engine, image: str, name: str, text: str) -> None:
    """The image with another record of its packages."""
    made = engine.api.create_container(image, command=["none"])["Id"]
    try:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as files:
            member = tarfile.TarInfo(PACKAGES)
            member.size = len(text)
            files.addfile(member, io.BytesIO(text.encode()))
        assert engine.api.put_archive(made, "/", archive.getvalue())
        engine.api.commit(made, repository=name)
    finally:
        engine.api.remove_container(made)


def test_what_is_built_is_not_built_again(engine: Engine, image: str, name: str) -> None:
    """All steps come from the cache: nothing is fetched, and it is the same image."""
    again = build_image("minimal", name=name)
    assert again == name
    assert engine.api.inspect_image(again)["Id"] == engine.api.inspect_image(image)["Id"]


@pytest.mark.soak
def test_what_differs_between_two_builds_is_named(engine: Engine, image: str, name: str, runtime: Path) -> None:
    has = recorded_packages(image)
    assert len(has) > 100
    assert has["xvfb:amd64"]
    assert compare_packages(has, has) == []
    lines = [f"{key.partition(':')[0]} {version} {key.partition(':')[2]}" for key, version in has.items()]
    openbox = has["openbox:amd64"]
    lines = [line.replace(openbox, "0.1") if line.startswith("openbox ") else line for line in lines]
    lines = [line for line in lines if not line.startswith("xvfb ")]
    changed(engine, image, name, "\n".join([*lines, "zzz 1 all", ""]))
    expected = [
        f"package openbox:amd64: {openbox} -> 0.1",
        f"package xvfb:amd64: {has['xvfb:amd64']} -> is not there",
        "package zzz:all: was not there -> 1",
    ]
    assert compare_packages(has, recorded_packages(name)) == expected
    # Whoever builds under the name of an older image is told; here it comes back from the cache.
    told: list[str] = []
    build_image("minimal", name=name, tell=told.append)
    assert [line for line in told if line.startswith("package ")] == [
        f"package openbox:amd64: 0.1 -> {openbox}",
        f"package xvfb:amd64: was not there -> {has['xvfb:amd64']}",
        "package zzz:all: 1 -> is not there",
    ]
    assert left(engine, runtime) == []


@pytest.mark.soak
def test_a_check_against_another_image_names_what_differs(
    image: str, engine: Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What else it looks at takes seconds, and has a test of its own.
    monkeypatch.setattr(images, "_INSIDE", images._INSIDE[:1])
    changed(engine, image, name, "only-this 1 all\n")
    other, *others = check_image(image, against=name)
    assert (other.name, other.ok) == (f"the packages are those of {name}", False)
    assert [finding.ok for finding in others] == [True, True]
    assert "package only-this:all: 1 -> is not there" in other.found


def test_an_image_without_a_record_says_so(engine: Engine, runtime: Path) -> None:
    with pytest.raises(deskhand.LaunchFailed, match="the record of packages in debian:bookworm-slim"):
        recorded_packages("debian:bookworm-slim")
    assert left(engine, runtime) == []


if EVIDENCE:

    def test_two_builds_have_the_same_packages(engine: Engine, image: str, name: str) -> None:
        """Without the cache; what the mirror has had since would be named here."""
        steps = engine.api.build(
            path=str(context()), tag=name, target="minimal", nocache=True, rm=True, forcerm=True, decode=True
        )
        assert [message for message in steps if "error" in message] == []
        assert engine.api.inspect_image(name)["Id"] != engine.api.inspect_image(image)["Id"]
        assert compare_packages(recorded_packages(image), recorded_packages(name)) == []
