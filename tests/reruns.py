"""A pytest plugin: a test that drives outside programs and fails is run once more, and that is told and counted.

Such a test has the marker `rerun_once`. Its module's fixtures are made anew for the second time. A run in which more than
`ALLOWED` tests were run again fails, whatever came of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

ALLOWED = 3
_RERUN = "rerun"
_again = pytest.StashKey[bool]()
_first_failures = pytest.StashKey[dict[str, list[pytest.TestReport]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-reruns", action="store_true", help="run no test a second time")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rerun_once: run again once if it fails; for tests that drive outside programs")
    config.stash[_first_failures] = {}
    # Where the reports of all processes arrive.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Budget(config), "rerun-budget")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    marked = item.get_closest_marker("rerun_once") is not None and not item.config.getoption("no_reruns")
    if not marked or item.stash.get(_again, False):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    if failed:
        failed += _tear_module_down(item)
    for report in failed or reports:
        if failed:
            report.outcome = _RERUN  # type: ignore[assignment] # a category of our own
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if failed:
        item.stash[_again] = True
        # By all hooks, so that it has a time limit of its own.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
    return True


def _tear_module_down(item: pytest.Item) -> list[pytest.TestReport]:
    """End what the tests of the module share; a report if that fails."""
    module = item.getparent(pytest.Module)
    kept = item.session if module is None or module.parent is None else module.parent
    call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(kept), "teardown")  # type: ignore[arg-type] # of a node it wants the chain only
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return [report] if report.failed else []


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return (_RERUN, "R", "RERUN") if report.outcome == _RERUN else None


class _Budget:
    """Counts in the process that the reports of all others come to."""

    def __init__(self, config: pytest.Config) -> None:
        self._failures = config.stash[_first_failures]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == _RERUN:
            self._failures.setdefault(report.nodeid, []).append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self._failures) > ALLOWED and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        if not self._failures:
            return
        terminalreporter.section("tests that were run again")
        for name, reports in self._failures.items():
            for report in reports:
                terminalreporter.write_line(f"--- {name} failed at first ({report.when}):")
                terminalreporter.write_line(report.longreprtext)
        count = len(self._failures)
        verdict = "too many: the run has failed" if count > ALLOWED else "so many are allowed"
        terminalreporter.write_line(f"{count} run again, of at most {ALLOWED}; {verdict}")
        for name, reports in self._failures.items():
            crash = getattr(reports[0].longrepr, "reprcrash", None)
            message = reports[0].longreprtext if crash is None else crash.message
            terminalreporter.write_line(f"RERUN {name} - {message.partition(chr(10))[0]}")
