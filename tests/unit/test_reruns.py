"""The plugins of these tests themselves: what is run again, what is told of it, and when a run fails for it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

# Each test fails so often as its number says; how often it has run is in a file, for it may be run by any process.
FLAKY = """
import pathlib, pytest
COUNTS = pathlib.Path({folder!r})

def add(name, text):
    with (COUNTS / f"{{pathlib.Path(__file__).stem}}-{{name}}").open("a+") as file:
        file.write(text)
        file.seek(0)
        return file.read()

@pytest.fixture(scope="module")
def shared():
    add("made", "made,")
    yield
    add("made", "ended,")

{marker}
@pytest.mark.parametrize(("number", "failures"), {cases})
def test_it(shared, number, failures):
    assert len(add(number, "x")) > failures, f"flaky number {{number}}"
"""
ONCE = "@pytest.mark.rerun_once"


@pytest.fixture
def runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Where files are run with the plugins alone."""
    tests = str(Path(__file__).parents[1])
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", tests)
    monkeypatch.syspath_prepend(tests)
    pytester.makeconftest('pytest_plugins = ["reruns", "costs"]')
    return pytester


def write(runs: pytest.Pytester, name: str, failures: list[int], marker: str = ONCE) -> None:
    cases = list(enumerate(failures))
    runs.makepyfile(**{name: FLAKY.format(folder=str(runs.path), marker=marker, cases=cases)})


def run(runs: pytest.Pytester, processes: int = 0) -> pytest.RunResult:
    """In so many processes, or in this one."""
    if processes:
        return runs.runpytest_subprocess("-p", "xdist", "-n", str(processes), "--dist", "loadfile")
    return runs.runpytest_inprocess()


@pytest.mark.parametrize("processes", [0, 2])
def test_what_fails_once_is_run_again_told_and_counted(runs: pytest.Pytester, processes: int) -> None:
    write(runs, "test_one", [0, 1, 0])
    write(runs, "test_two", [1])
    result = run(runs, processes)
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes() == {"passed": 4, "rerun": 2}
    result.stdout.fnmatch_lines(["2 run again, of at most 3; so many are allowed"])
    said = result.stdout.str()
    for name, number in (("one", 1), ("two", 0)):
        assert f"RERUN test_{name}.py::test_it[{number}-1] - AssertionError: flaky number {number}" in said
        assert (runs.path / f"test_{name}-{number}").read_text() == "xx"
    # What the failed one shared with others is not used again.
    assert (runs.path / "test_one-made").read_text() == "made,ended," * 2


@pytest.mark.parametrize("processes", [0, 2])
def test_too_many_fail_the_run_though_all_pass_in_the_end(runs: pytest.Pytester, processes: int) -> None:
    """Two in each of two processes."""
    write(runs, "test_one", [1, 1])
    write(runs, "test_two", [1, 1])
    result = run(runs, processes)
    assert result.parseoutcomes() == {"passed": 4, "rerun": 4}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["4 run again, of at most 3; too many: the run has failed"])


def test_what_fails_twice_has_failed(runs: pytest.Pytester) -> None:
    write(runs, "test_one", [2])
    result = run(runs)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"failed": 1, "rerun": 1}
    assert (runs.path / "test_one-0").read_text() == "xx"


def test_none_is_run_again_where_failures_are_counted(runs: pytest.Pytester) -> None:
    write(runs, "test_one", [1])
    assert runs.runpytest_inprocess("--no-reruns").parseoutcomes() == {"failed": 1}


def test_what_has_no_marker_is_run_once(runs: pytest.Pytester) -> None:
    write(runs, "test_one", [1], marker="")
    result = run(runs)
    assert result.parseoutcomes() == {"failed": 1}
    assert "run again" not in result.stdout.str()


@pytest.mark.parametrize("where", ["setup", "teardown", "module teardown"])
def test_a_fixture_that_fails_once_counts_as_its_test(runs: pytest.Pytester, where: str) -> None:
    runs.makepyfile(f"""
        import pathlib, pytest
        def fail_once(here):
            seen = pathlib.Path({str(runs.path)!r}, "seen")
            if here == {where!r} and not seen.exists():
                seen.touch()
                raise RuntimeError("flaky fixture")
        @pytest.fixture(scope="module")
        def shared():
            yield
            fail_once("module teardown")
        @pytest.fixture
        def own(shared):
            fail_once("setup")
            yield
            fail_once("teardown")
        @pytest.mark.rerun_once
        def test_it(own):
            pass
    """)
    result = run(runs)
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}
    assert "RuntimeError: flaky fixture" in result.stdout.str()


def test_the_second_time_has_a_limit_of_its_own(runs: pytest.Pytester) -> None:
    runs.makepyfile("""
        import pytest, threading
        @pytest.mark.rerun_once
        @pytest.mark.timeout(1)
        def test_it():
            threading.Event().wait(60)
    """)
    # Not in this process, which has a limit too.
    result = runs.runpytest_subprocess("-p", "pytest_timeout")
    assert result.parseoutcomes() == {"failed": 1, "rerun": 1}


@pytest.mark.parametrize("processes", [0, 2])
def test_where_the_time_went_is_told(runs: pytest.Pytester, processes: int) -> None:
    runs.makepyfile(
        test_busy="""
        import subprocess, sys, time
        def test_here():
            begun = time.process_time()
            while time.process_time() - begun < 0.3: pass
        def test_below():
            code = "import time\\nwhile time.process_time() < 0.5: pass"
            subprocess.run([sys.executable, "-c", code], check=True)
        """
    )
    runs.makepyfile(test_idle="def test_it(): pass")
    result = run(runs, processes)
    lines = result.stdout.lines
    table = lines[next(at for at, line in enumerate(lines) if line.endswith("processor  file")) :]
    used = {line.split()[2]: float(line.split()[1]) for line in table[1:3]}
    assert used["test_busy.py"] >= 0.7
    assert used["test_idle.py"] < 0.3
    assert table[3].endswith("all files")
