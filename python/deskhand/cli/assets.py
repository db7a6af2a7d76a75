"""The commands that bring what tasks of other benchmarks need: `assets fetch`, `add` and `evaluators`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import examples, json_option, show_json

if TYPE_CHECKING:
    from deskhand.episodes.tasks.osworld.assets import Assets

_directory = click.option(
    "--assets",
    metavar="DIR",
    type=click.Path(file_okay=False),
    envvar="DESKHAND_ASSETS",
    show_envvar=True,
    help="The cache. [default: deskhand/assets in the user's cache directory]",
)


def use_assets(directory: str | None) -> None:
    """Make a directory the cache of this process, and of the workers that it starts."""
    from deskhand.episodes.tasks.osworld.assets import use_directory  # noqa: PLC0415 # other commands need not wait for it

    if directory is not None:
        use_directory(directory)


def use_consent(hosts: tuple[str, ...], variables: tuple[str, ...]) -> None:
    """Allow tasks of Harbor hosts of the network, and variables of this process, in it and in the workers that it starts."""
    from deskhand.episodes.tasks.harbor.consent import allow  # noqa: PLC0415 # as above
    from deskhand.launchers.docker.allow_list import parse_hosts  # noqa: PLC0415 # as above

    if hosts:
        parse_hosts(hosts)
    allow(hosts=hosts, variables=variables)


def _cache(directory: str | None) -> Assets:
    from deskhand.episodes.tasks.osworld.assets import find_assets  # noqa: PLC0415 # as above

    use_assets(directory)
    return find_assets()


@click.group(
    epilog=examples(
        "deskhand assets fetch osworld:OSWorld",
        "deskhand assets add https://huggingface.co/.../a.xlsx a.xlsx",
        "deskhand assets evaluators osworld:OSWorld",
    )
)
def assets() -> None:
    """Bring what tasks of OSWorld need: files that they download, and upstream's evaluators."""


@assets.command(
    epilog=examples(
        "deskhand assets fetch osworld:OSWorld",
        "deskhand assets fetch osworld:OSWorld/libreoffice_calc --assets /data/assets",
    )
)
@click.argument("names", metavar="osworld:PATH...", nargs=-1, required=True)
@_directory
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="A host that may be asked, besides the hub's; HOST:PORT for http://.",
)
@click.option("--most", type=click.IntRange(1), default=512, show_default=True, help="The largest file, in MiB.")
@json_option
def fetch(*, names: tuple[str, ...], assets: str | None, hosts: tuple[str, ...], most: int, as_json: bool) -> int:
    """Fetch the files of tasks into the cache, and check those that are there.

    A download that was cut off goes on from where it ended. The exit code is 1 if a file is missing at the end.
    """
    from deskhand.episodes.tasks.osworld.collection import find_entries  # noqa: PLC0415 # as above
    from deskhand.episodes.tasks.osworld.evaluators import load_table  # noqa: PLC0415
    from deskhand.episodes.tasks.osworld.fetching import HOSTS  # noqa: PLC0415
    from deskhand.episodes.tasks.osworld.needs import needs_of  # noqa: PLC0415
    from deskhand.errors import EpisodeError  # noqa: PLC0415

    cache = _cache(assets)
    wanted: dict[str, list[str]] = {}
    for entry in (entry for name in names for entry in find_entries(name)):
        for url in needs_of(entry.task, load_table()).urls if entry.task is not None else ():
            wanted.setdefault(url, []).append(f"{entry.domain}/{entry.id}")
    fetched, failed = 0, {}
    for number, (url, tasks) in enumerate(wanted.items(), 1):
        try:
            new = cache.fetch(url, hosts=(*HOSTS, *hosts), most=most << 20)
        except EpisodeError as error:
            failed[url] = {"error": str(error), "tasks": tasks}
            click.echo(clean(f"[{number}/{len(wanted)}] {error} (for {', '.join(tasks[:3])})"), err=True)
            continue
        fetched += new
        if new:
            click.echo(clean(f"[{number}/{len(wanted)}] {url}"), err=True)
    if as_json:
        show_json({"directory": str(cache.directory), "files": len(wanted), "fetched": fetched, "failed": failed})
    else:
        left = f", {len(failed)} are missing" if failed else ""
        click.echo(f"{len(wanted)} files in {clean(str(cache.directory))}: {fetched} fetched{left}")
    return 1 if failed else 0


@assets.command(epilog=examples("deskhand assets add https://huggingface.co/.../a.xlsx Downloads/a.xlsx"))
@click.argument("url")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@_directory
def add(*, url: str, file: str, assets: str | None) -> None:
    """Put FILE into the cache as what URL names, for a machine that cannot fetch it."""
    _cache(assets).put(url, Path(file))


@assets.command(
    epilog=examples(
        "deskhand assets evaluators osworld:OSWorld",
        "deskhand assets evaluators osworld:OSWorld/os --into ./evaluators",
        "export DESKHAND_OSWORLD_PYTHON=$PWD/evaluators/bin/python",
    )
)
@click.argument("names", metavar="[osworld:PATH...]", nargs=-1)
@click.option(
    "--into",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Where the environment is made; DESKHAND_OSWORLD_PYTHON names its bin/python then. [default: a place that is found]",
)
@click.option(
    "--without", multiple=True, metavar="PACKAGE", help="A package to leave out, such as easyocr, which brings torch."
)
def evaluators(*, names: tuple[str, ...], into: str | None, without: tuple[str, ...]) -> None:
    """Make the environment in which upstream's evaluators run, with the packages that the tasks' evaluators use.

    Without tasks, with those of all evaluators. It is apart from this one, because upstream's package wants an old numpy. Made
    again, it gets what is new.
    """
    from deskhand.episodes.tasks.osworld.collection import find_entries  # noqa: PLC0415 # as above
    from deskhand.episodes.tasks.osworld.evaluators import (  # noqa: PLC0415
        PYTHON,
        default_directory,
        load_table,
        make_evaluators,
    )
    from deskhand.episodes.tasks.osworld.needs import needs_of  # noqa: PLC0415

    tasks = [entry.task for name in names for entry in find_entries(name) if entry.task is not None]
    known = load_table()
    packages = {package for task in tasks for package in needs_of(task, known).packages}
    if not names:
        packages = {package for rows in (known.metrics, known.getters) for uses, _ in rows.values() for package in uses}
    packages -= set(without)
    place = Path(into).absolute() if into is not None else default_directory()
    made = make_evaluators(place, packages, lambda line: click.echo(clean(line), err=True))
    click.echo(f"desktop-env {made.version} for {len(tasks) or 'all'} tasks: {made.python}")
    if into is not None:
        click.echo(f"export {PYTHON}={made.python}")


COMMANDS = (assets,)
"""The commands of this module."""
