"""The command that plays episodes: `run`.

This module owns how Ctrl-C ends a run. It has no way in which an episode is played (see `deskhand.episodes`).
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from typing import TYPE_CHECKING, Any

import click

from deskhand.cli.assets import use_assets, use_consent
from deskhand.cli.common import examples, quiet_option
from deskhand.cli.planning import announce, plan, usual_backend
from deskhand.cli.run_progress import Course, screen_for, showing

if TYPE_CHECKING:
    from deskhand.cli.run_progress import Shown
    from deskhand.episodes.run.plan import News
    from deskhand.episodes.run.run import Begun

_INTERRUPTED = 130
_NOTHING_VALID = 1
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _shard(_ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int]:
    if value is None:
        return 0, 1
    part, _, parts = value.partition("/")
    if not (part.isdecimal() and parts.isdecimal()):
        raise click.BadParameter(f"{value!r} is not of the form i/n, such as 0/4", param=param)
    return int(part), int(parts)


@click.command(
    epilog=examples(
        "deskhand run --agent oracle --desktops 4 --out runs/oracle",
        "deskhand run 'text-*' tag:files --agent openai:gpt-5.4 --seeds 5 --repeats 3 --out runs/gpt",
        "deskhand run ./my-task --agent my_agent:act --out runs/mine",
        "deskhand run --agent oracle --desktops 4 --out runs/seen --watch    # and see all four at work on a page",
        "deskhand run --out runs/gpt                    # go on with it, wherever it was stopped or killed",
        "deskhand run --out runs/gpt --seeds 10         # five more of each",
        "deskhand run --agent nothing --backend docker --image deskhand/desktop --out runs/nothing",
        "deskhand run osworld:OSWorld --plan            # which of its tasks can run here, and why not",
        "deskhand run osworld:OSWorld --plan --backend docker --table markdown    # the same as a page, task by task",
        "deskhand run osworld:OSWorld/os --backend docker --agent openai:gpt-5.4 --out runs/osworld",
        "deskhand run harbor:tasks --agent openai:gpt-5.4 --out runs/harbor",
        "deskhand run --shard 2/8 --ledger postgresql://runner@db/episodes --out /data/run    # one of eight jobs",
    )
)
@click.argument("tasks", metavar="[TASK...]", nargs=-1)
@click.option("--out", metavar="DIR", type=click.Path(file_okay=False), help="The run's directory.  [required]")
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Only say which tasks of osworld:PATH or harbor:PATH can run here, and why not.",
)
@click.option(
    "--table",
    "form",
    type=click.Choice(["markdown"]),
    help="With --plan: print tables for a page, with a row for each task.",
)
@click.option(
    "--assets",
    metavar="DIR",
    type=click.Path(file_okay=False),
    envvar="DESKHAND_ASSETS",
    show_envvar=True,
    help="The cache with the files of OSWorld's tasks; see `deskhand assets`.",
)
@click.option(
    "--agent",
    metavar="NAME",
    help="oracle (the default), nothing, random, replay:PATH, module:function, or a model's loop: openai, anthropic, google,"
    " bedrock, langchain, agent-framework, each with :MODEL.",
)
@click.option("--desktops", type=click.IntRange(1), help="Episodes at once. [default: 1]")
@click.option("--seeds", type=click.IntRange(1), help="Instances of each task. [default: 1]")
@click.option("--repeats", type=click.IntRange(1), help="How often each instance. [default: 1]")
@click.option("--limit", type=click.IntRange(1), help="No more episodes than these, all tasks' first seeds first.")
@click.option("--engine", help="What places workers: local, or ray. [default: local]")
@click.option("--backend", help="Where desktops run: local (the default), or docker.")
@click.option("--image", help="The container image, instead of the tasks' own.")
@click.option(
    "--network",
    metavar="HOST",
    multiple=True,
    help="A host that tasks of harbor:PATH may reach, if they do not refuse a network. By default there is none.",
)
@click.option(
    "--env",
    metavar="NAME",
    multiple=True,
    help="A variable of yours that tasks of harbor:PATH may read, where they ask for it.",
)
@click.option("--shard", metavar="I/N", callback=_shard, help="Play only part I (0 to N-1) of N.")
@click.option(
    "--ledger",
    metavar="URL",
    envvar="DESKHAND_LEDGER",
    show_envvar=True,
    help="postgresql://..., for many machines; by default a file in DIR. Its password is better in PGPASSWORD or PGPASSFILE.",
)
@click.option("--run-seed", type=int, help="The seed of all instances. [default: 0]")
@click.option(
    "--host",
    is_flag=True,
    help="With --agent replay:PATH: repeat the recorded operations on this machine, with your rights.",
)
@click.option(
    "--watch", "watched", is_flag=True, help="Show the desktops live on a page. Its link, which works once, is printed."
)
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line for each event.")
def run(  # each is an option
    *,
    tasks: tuple[str, ...],
    out: str | None,
    only_plan: bool,
    form: str | None,
    assets: str | None,
    agent: str | None,
    desktops: int | None,
    seeds: int | None,
    repeats: int | None,
    limit: int | None,
    engine: str | None,
    backend: str | None,
    image: str | None,
    network: tuple[str, ...],
    env: tuple[str, ...],
    shard: tuple[int, int],
    ledger: str | None,
    run_seed: int | None,
    host: bool,
    watched: bool,
    as_json: bool,
) -> int:
    """Have an agent do tasks, each on a desktop of its own, and record the results.

    TASK is a name, a pattern (`text-*`), `tag:text`, `level:2`, a folder with a task.toml, `osworld:PATH`, `harbor:PATH`, or
    `module:Class`; all that ship when none is named. A DIR that has a run continues that run: finished episodes stay, and
    options that are not given keep their values. Ctrl-C gives back the episodes under way and ends; a second one ends at once.
    Nothing is lost either way.

    `osworld:PATH` means a checkout of OSWorld, and `osworld:PATH/DOMAIN`, `osworld:PATH/DOMAIN/ID` or `osworld:PATH/LIST.json`
    some of its tasks. Upstream's code evaluates them, in the environment that `deskhand assets evaluators` makes or that
    DESKHAND_OSWORLD_PYTHON names.

    `harbor:PATH` means a task in Harbor's format or a folder of them, `harbor:PATH/hello-*` some of these. They run in
    containers of images that are built from their Dockerfiles. A Dockerfile is foreign code, which the engine runs as root,
    with its network, while it builds.

    Tasks, agents and records are code: run only those that you trust. What a DIR itself names of them (tasks that do not ship,
    module:function, replay:PATH, a ledger elsewhere) has to be named again to go on.
    """
    use_assets(assets)
    use_consent(network, env)
    backend = backend or usual_backend(tasks)
    if only_plan and form is not None and as_json:
        raise click.UsageError("--table and --json are two forms of the same plan: give one of them")
    if only_plan:
        plan(tasks, backend=backend or "local", image=image, form=form, as_json=as_json)
        return 0
    if form is not None:
        raise click.UsageError("--table is a form of the plan: add --plan; of a run, deskhand report has tables")
    if out is None:
        raise click.MissingParameter(param_hint="'--out'", param_type="option")
    # These load a good part of the package, which other commands need not wait for.
    from deskhand.episodes.run.engines import find_engine  # noqa: PLC0415
    from deskhand.episodes.run.run import begin  # noqa: PLC0415

    announce(tasks, backend=backend or "local")
    begun = begin(
        out,
        tasks,
        agent=agent,
        desktops=desktops,
        engine=engine,
        seeds=seeds,
        repeats=repeats,
        limit=limit,
        backend=backend,
        image=image,
        shard=shard,
        ledger=ledger,
        run_seed=run_seed,
        host=host,
        watched=watched,
    )
    machine = find_engine(begun.manifest["engine"])
    course = Course(begun.keys, before := _done(begun))
    screen = screen_for(as_json=as_json)
    screen.begin(begun, course)
    again = _again(out, begun, ledger)
    with showing(screen, course):
        reason = asyncio.run(_played(machine, begun, course, screen, again))
    course.done = _done(begun)
    course.others = course.done - before - course.results.total()
    screen.end(begun, course, reason, again)
    if reason is not None:
        return _INTERRUPTED
    return _NOTHING_VALID if course.is_in_vain else 0


async def _played(engine: Any, begun: Begun, course: Course, screen: Shown, again: str) -> str | None:
    """Returns why it was stopped; None if it was not."""
    from deskhand.episodes.play.supervision import Stop  # noqa: PLC0415 # see run

    stop = Stop()

    def tell(news: News) -> None:
        course.on_news(news)
        screen.on_news(news, course)

    def on_signal(number: signal.Signals) -> None:
        if stop.reason is not None:
            screen.end(begun, course, stop.reason, again)
            # Every desktop has a guard that ends it when this process is gone.
            os._exit(128 + number)
        screen.say(f"{number.name}: giving back the running episodes; a second signal ends at once")
        stop(f"the operator stopped the run ({number.name})")

    loop = asyncio.get_running_loop()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, on_signal, number)
    await engine.run(begun.plan, stop=stop, tell=tell)
    return stop.reason


def _done(begun: Begun) -> int:
    from deskhand.episodes.ledger import open_ledger  # noqa: PLC0415 # see run
    from deskhand.episodes.ledger.ledger import State  # noqa: PLC0415 # see run

    ledger = open_ledger(begun.plan.ledger)
    try:
        return ledger.counts(shard=begun.plan.shard)[State.DONE]
    finally:
        ledger.close()


def _again(out: str, begun: Begun, ledger: str | None) -> str:
    """The command that continues it."""
    from deskhand.episodes.ledger import ledger_name  # noqa: PLC0415 # likewise
    from deskhand.episodes.play.agents import is_code  # noqa: PLC0415 # see run
    from deskhand.episodes.tasks.catalogue import ships  # noqa: PLC0415 # likewise
    from deskhand.episodes.tasks.harbor.consent import allowed  # noqa: PLC0415 # likewise

    plan, shard = begun.plan, begun.plan.shard
    words = ["deskhand", "run", *(name for name in plan.tasks if not ships(name)), "--out", out]
    words += ["--agent", plan.agent] if is_code(plan.agent) else []
    words += ["--host"] if plan.host else []
    given = allowed()
    words += [word for host in given.hosts for word in ("--network", host)]
    words += [word for name in given.variables for word in ("--env", name)]
    words += ["--shard", f"{shard[0]}/{shard[1]}"] if shard != (0, 1) else []
    words += ["--ledger", ledger_name(ledger)] if ledger is not None else []
    words += ["--watch"] if plan.watched else []
    return shlex.join(words)


COMMANDS = (run,)
"""The commands of this module."""
