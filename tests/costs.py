"""A pytest plugin: at the end of a run, which files took longest, and how much of that was work.

A test's processor time is that of its process and of the children that it has waited for. What a daemon or a container used is
not in it.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter

_SHOWN = 12
_files = pytest.StashKey[dict[str, list[float]]]()
# When the last phase of a test ended, in processor time of this process.
_used = [0.0]


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_files] = defaultdict(lambda: [0.0, 0.0])
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Table(config), "cost-table")


def pytest_runtest_logstart() -> None:
    _used[0] = _processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    now = _processor_seconds()
    # What a report has goes with it to the process that counts.
    vars(report)["processor_seconds"] = now - _used[0]
    _used[0] = now
    return report


class _Table:
    """Adds up in the process that the reports of all others come to."""

    def __init__(self, config: pytest.Config) -> None:
        self._files = config.stash[_files]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        sums = self._files[report.nodeid.partition("::")[0]]
        sums[0] += report.duration
        sums[1] += getattr(report, "processor_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        slowest = sorted(self._files.items(), key=lambda file: file[1][0], reverse=True)[:_SHOWN]
        total = [sum(sums[place] for sums in self._files.values()) for place in (0, 1)]
        terminalreporter.section("slowest files")
        terminalreporter.write_line(" seconds  processor  file")
        for name, (seconds, used) in [*slowest, ("all files", total)]:
            terminalreporter.write_line(f"{seconds:8.1f} {used:10.1f}  {name}")
