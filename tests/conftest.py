"""Real desktops for tests, each with a home directory of its own so that no first-run or crash-recovery window comes up."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

import deskhand
from providers import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


pytest_plugins = ["integration.fixtures", "reruns", "costs"]

# What is imported and collected stays until the end: the garbage collector does not look at it (0.4 s each time).
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    # A tenth of the unit tests' processor time went into looking for cycles; a test that needs them gone asks for it.
    gc.set_threshold(20_000, 50, 50)
    gc.enable()


# The same examples in every run, and none fails because the machine is busy.
hypothesis.settings.register_profile(
    "deskhand", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("deskhand")


# These take minutes each. With several processes they begin first, or the end would be one process's alone. The first builds
# the image of the tests where it is missing, which takes minutes too: the others that need it come last of these.
_LONG = (
    "containers/test_sockets.py",
    "integration/test_cli.py",
    "faults/test_keyboard.py",
    "faults/test_held.py",
    "conformance/test_events.py",
    "episodes/test_ray.py",
    "elements/test_actionability.py",
    "integration/test_bench.py",
    "integration/test_bench_elements.py",
    "episodes/test_suite.py",
    "watch/test_page.py",
    "docs/test_site.py",
    "docs/test_starts.py",
    "episodes/test_run.py",
    "integration/test_typing.py",
    "integration/test_wheel.py",
    "providers/test_versions.py",
    "faults/test_leaks.py",
    "faults/test_line.py",
    "faults/test_bindings.py",
    "faults/test_gestures.py",
    "watch/test_rough_use.py",
    "watch/test_transfers.py",
    "watch/test_odd_texts.py",
    "watch/test_attacks.py",
    "integration/test_zoo.py",
    "containers/test_allowlist.py",
    "containers/test_allowlist_ends.py",
    "containers/test_faults.py",
    "conformance/test_desktop.py",
    "containers/test_elements.py",
    "containers/test_remote.py",
    "containers/test_cli.py",
    "containers/test_pool.py",
    "containers/test_hardening.py",
)


# What drives programs that are not ours may be run once more (`reruns`): by folder, file, or what a test asks for.
_DRIVING_FOLDERS = {"conformance", "containers", "faults", "integration"}
_DRIVING_FILES = {
    "compatibility/test_page.py",
    "docs/test_examples.py",
    "docs/test_site.py",
    "docs/test_starts.py",
    "episodes/test_browser.py",
    "episodes/test_crash.py",
    "episodes/test_demo_episodes.py",
    "episodes/test_report.py",
    "episodes/test_run.py",
    "episodes/test_task_context.py",
    "episodes/test_suite_applications.py",
    "episodes/test_video.py",
    "providers/test_browsing.py",
    "providers/test_openai_client.py",
    "watch/test_odd_texts.py",
    "watch/test_page.py",
    "watch/test_rough_use.py",
    "watch/test_transfers.py",
    "watch/test_vnc.py",
}
_DRIVING_FIXTURES = {"desktop", "launch", "nodes", "observer", "postgres", "served", "shared", "world"}
# Desktops and servers in the test's own process, pictures and tables: what fails there fails always.
_PURE_FILES = {
    "conformance/test_table.py",
    "episodes/test_catalogue.py",
    "faults/test_malformed.py",
    "integration/test_images_decoders.py",
    "providers/test_session.py",
    "providers/test_traps.py",
}


def _drives_programs(item: pytest.Item) -> bool:
    folder, file = item.path.parts[-2:]
    if folder == "unit" or f"{folder}/{file}" in _PURE_FILES:
        return False
    asked = set(getattr(item, "fixturenames", ()))
    return folder in _DRIVING_FOLDERS or f"{folder}/{file}" in _DRIVING_FILES or bool(asked & _DRIVING_FIXTURES)


# Evidence only, because each takes minutes: what is in it.
EVIDENCE_ONLY = {
    "containers/test_applications.py": "every application of the image with all of them",
    "containers/test_daemon.py": "an engine that is ended and started again",
    "containers/test_throttled.py": "a container with a tenth of a processor, alone on a quiet machine",
    "elements/test_late_places.py": "a browser that tells places late, alone on a quiet machine",
    "episodes/test_ray_partition.py": "nodes of a cluster that are cut off from each other",
}
collect_ignore = [] if os.environ.get("DESKHAND_EVIDENCE") == "1" else list(EVIDENCE_ONLY)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the SDKs whose tested versions are others, and the files that this run leaves out; say what to run for both."""
    asked = [Path(str(argument).partition("::")[0]).absolute() for argument in config.args]
    root = Path(__file__).parent
    providers = root / "providers"
    runs_them = any(providers.is_relative_to(path) or path.is_relative_to(providers) for path in asked)
    if runs_them and (sdks := versions.behind()):
        terminalreporter.section("SDKs of other versions than evidence/sdks.md has")
        terminalreporter.write_line(f"{'; '.join(sdks)}: write it anew with {versions.COMMAND}")
    if os.environ.get("DESKHAND_EVIDENCE") == "1":
        return
    left_out = [name for name in EVIDENCE_ONLY if any((root / name).is_relative_to(path) for path in asked)]
    if left_out:
        terminalreporter.section("not run here")
    for name in left_out:
        command = f"DESKHAND_EVIDENCE=1 {os.path.relpath(sys.executable)} -m pytest {os.path.relpath(root / name)}"
        terminalreporter.write_line(f"{name} ({EVIDENCE_ONLY[name]}): run it with {command}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _drives_programs(item):
            item.add_marker("rerun_once")
    if hasattr(config, "workerinput"):
        places = {name: place for place, name in enumerate(_LONG)}
        items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(_LONG)))


# A shell's background jobs ignore these, and so would every driver that a test starts and interrupts.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def need(program: str, package: str) -> str:
    """The path of a program that a test drives; tests never skip for a missing one."""
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"{program} is not installed: apt-get install {package}")
    return path


@pytest.fixture(scope="session", autouse=True)
def _apart() -> Iterator[Path]:
    """Others have desktops too, and other processes of this run: what is made here has a runtime directory of its own."""
    # Not below pytest's directory: Chromium's socket is deep in it, and a socket's path has 107 bytes.
    with tempfile.TemporaryDirectory(prefix="deskhand-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def short(_apart: Path) -> Path:
    """A directory in which sockets have room: the path of `tmp_path` grows with the test's name and the number of the run."""
    return Path(tempfile.mkdtemp(dir=_apart))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home directory."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """What programs on a test's desktop get in addition."""
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    return {"HOME": str(home), **folders}


@pytest.fixture
def launch(environment: dict[str, str]) -> Iterator[Callable[..., deskhand.Desktop]]:
    """`deskhand.launch` with the test's own home; what it launched is closed at the end."""
    desktops: list[deskhand.Desktop] = []

    def make(**options: object) -> deskhand.Desktop:
        extra = options.pop("env", None) or {}
        assert isinstance(extra, dict)
        desktop = deskhand.launch(env={**environment, **extra}, **options)  # type: ignore[arg-type]
        desktops.append(desktop)
        return desktop

    yield make
    for desktop in desktops:
        desktop.close()


@pytest.fixture
def desktop(launch: Callable[..., deskhand.Desktop]) -> deskhand.Desktop:
    """A desktop of 1000x700 pixels."""
    return launch(size=(1000, 700))


@pytest.fixture
def x_environment(desktop: deskhand.Desktop) -> dict[str, str]:
    """What lets any X client join `desktop`."""
    assert desktop.display is not None
    return {**os.environ, "DISPLAY": desktop.display, "XAUTHORITY": str(desktop.xauthority)}
