"""Workers on the nodes of a Ray cluster: one on each node with desktops.

This module owns Ray's part: the connection, an actor for each node, and what happens when one of them dies. How a worker works
is elsewhere, and the results that count are those in the ledger.

A node declares in a resource how many desktops it can have (`ray start --resources '{"desktop": 8}'`). One actor takes them
all and keeps them warm. Ray restarts an actor whose process died, and does not repeat its calls (`max_task_retries=0`),
because only the ledger knows whether they were carried out. So the driver asks the new actor for its name, and gives back
what its predecessor held. If a node dies, its actor dies with it: what that held is given back when Ray reports the death or
when the leases expire, whichever is first, and the other nodes play it.

Any client that reaches a cluster's ports can run code on it: so token authentication is switched on, and this engine refuses
to work if it was switched off. A cluster that is started here has a token of its own, and no dashboard.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import secrets
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand._core.redaction import one_line
from deskhand._native import __version__
from deskhand.episodes.ledger import is_shared, ledger_name, open_ledger
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.run.engines.tunnel import PageHost, Tunnel
from deskhand.episodes.run.plan import News
from deskhand.episodes.run.worker import Worker
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from deskhand.episodes.run.plan import Plan, Tell

_RESOURCE = "desktop"
_AUTHENTICATION = "RAY_AUTH_MODE"
_HOW_TO_START = (
    "start nodes with `RAY_worker_niceness=0 ray start --resources '{\"desktop\": 4}'`, where 4 is how many desktops that "
    "node can have"
)
# Seconds between two checks of the nodes, and between two tries to reach one.
_LOOK = 2.0
# How long a cluster that had nodes with desktops may be without any.
_PATIENCE = 120.0
# How long a worker may take to close its desktops; after that, Ray ends it.
_GRACE = 30.0
# How long to wait for an answer; after that, the node counts as gone.
_ANSWER = 10.0
_OBJECT_STORE = 128 << 20
_LONGEST_LINE = 300


class _Restarted(Exception):
    """The process was restarted since it gave its name."""


class DesktopHost(PageHost):
    """The actor: a worker on a node."""

    def __init__(self, plan: Plan, make: Callable[..., Worker], version: str) -> None:
        """Prepare; nothing is started yet.

        Args:
            plan: The plan; `desktops` is the number for this node.
            make: Makes the worker.
            version: The version of the driver's deskhand.
        """
        super().__init__()
        self._plan = plan
        self._make = make
        self._version = version
        self._stop = Stop()
        self._worker: Worker | None = None
        self._running: asyncio.Task[None] | None = None
        self._news: asyncio.Queue[News | None] = asyncio.Queue()

    async def open(self) -> str:
        """The name of this process. A new name means a new process, whose predecessor is dead.

        Raises:
            EpisodeError: This node cannot play the plan.
        """
        if self._worker is None:
            self._worker = await asyncio.to_thread(self._open)
        return self._worker.name

    def _open(self) -> Worker:
        node, plan = socket.gethostname(), self._plan
        if __version__ != self._version:
            raise EpisodeError(
                f"node {node} has deskhand {__version__}, but the driver has {self._version}: install the same version"
            )
        if not Path(plan.directory).is_dir():
            raise EpisodeError(
                f"node {node} cannot access {plan.directory}: give an --out on a file system that all nodes share"
            )
        return self._make(plan, stop=self._stop, tell=self._tell)

    async def play(self, name: str) -> AsyncIterator[News]:
        """Play, and yield news until the end. Called again after a lost connection, it continues to yield news.

        Args:
            name: The result of `open`.
        """
        if self._worker is None or self._worker.name != name:
            raise _Restarted
        self._news.put_nowait(None)
        mine = self._news = asyncio.Queue()
        if self._running is None:
            self._running = asyncio.create_task(self._worker.run())
        self._running.add_done_callback(lambda _: mine.put_nowait(None))
        while (news := await mine.get()) is not None:
            yield news
        if mine is self._news:
            await self._running

    async def stop(self, reason: str) -> None:
        """Give back the running episodes."""
        self._stop(reason)

    async def close(self) -> None:
        """End the desktops."""
        if self._worker is not None:
            await asyncio.to_thread(self._worker.close)

    def _tell(self, news: News) -> None:
        if news.kind == "page":
            self.page_served(news.text)
        self._news.put_nowait(news)


class RayEngine:
    """See `deskhand.episodes.run.engines.Engine`.

    `RAY_ADDRESS` names the cluster; without it, Ray is started on this machine.
    """

    def __init__(self, make: Callable[..., Worker] = Worker) -> None:
        """Import Ray.

        Args:
            make: Makes a worker from a plan, a `stop` and a `tell`; the nodes import it by its name.

        Raises:
            EpisodeError: The cluster would be open to everyone.
            MissingExtra: Ray is not installed.
        """
        # Ray reads it when it is imported.
        mode = os.environ.setdefault(_AUTHENTICATION, "token")
        if mode.lower() != "token":
            raise EpisodeError(
                f"{_AUTHENTICATION} is {mode!r}: any client of Ray's ports could run code there. Set it to token, on all nodes"
            )
        if "ray" not in sys.modules and not os.environ.get("RAY_ADDRESS") and "RAY_AUTH_TOKEN_PATH" not in os.environ:
            # Otherwise Ray would write one to a file in the home directory that every user of this machine may read.
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        # Otherwise Ray replaces `print` with a function of its own, permanently.
        os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")
        # Otherwise workers and their desktops run at a niceness of 15: beside a busy program, they take minutes to start.
        os.environ.setdefault("RAY_worker_niceness", "0")
        self._ray = load("ray", "ray")
        self._actors = load("ray.exceptions", "ray")
        self._make = make

    async def run(self, plan: Plan, *, stop: Stop, tell: Tell) -> None:
        """See `Engine.run`."""
        loop = asyncio.get_running_loop()

        def say(text: str) -> None:
            loop.call_soon_threadsafe(tell, News("trouble", text=text))

        with self._connected(plan), self._saying(say), contextlib.closing(open_ledger(plan.ledger)) as ledger:
            await _Cluster(self, plan, ledger.abandon, tell).run(stop)

    @contextlib.contextmanager
    def _connected(self, plan: Plan) -> Iterator[None]:
        if self._ray.is_initialized():
            yield
            return
        address = os.environ.get("RAY_ADDRESS")
        options: dict[str, Any] = {"address": address}
        if not address:
            options = {
                "address": "local",
                "num_cpus": 0,
                "resources": {_RESOURCE: plan.desktops},
                "include_dashboard": False,
                "dashboard_host": "127.0.0.1",
                "object_store_memory": _OBJECT_STORE,
            }
        try:
            with _signals_kept():
                self._ray.init(**options, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError, self._actors.RayError) as error:
            raise EpisodeError(
                f"Ray cannot be reached at {address or 'this machine'}: {error}; see that the cluster runs, and that "
                "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH has its token"
            ) from error
        try:
            yield
        finally:
            self._ray.shutdown()

    @contextlib.contextmanager
    def _saying(self, say: Callable[[str], None]) -> Iterator[None]:
        """Redirect Ray's messages about its nodes: it prints them to stdout, among the run's own lines, without an option."""
        module = load("ray._private.worker", "ray")

        def said(data: Mapping[str, Any], **_: object) -> None:
            for line in data["lines"]:
                say(one_line(line.partition("\n")[0], _LONGEST_LINE))

        before, module.print_to_stdstream = module.print_to_stdstream, said
        try:
            yield
        finally:
            module.print_to_stdstream = before

    def nodes(self, plan: Plan) -> dict[str, int]:
        """The living nodes with desktops, and how many of these are for this run.

        Raises:
            EpisodeError: There are several machines, but the ledger is a file on one.
        """
        alive = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get(_RESOURCE, 0) >= 1]
        if len({node["NodeManagerAddress"] for node in alive}) > 1 and not is_shared(plan.ledger):
            raise EpisodeError(
                f"the ledger {plan.ledger} is for one machine, but there are several: add --ledger postgresql://..."
            )
        return {node["NodeID"]: min(plan.desktops, int(node["Resources"][_RESOURCE])) for node in alive}

    def host(self, plan: Plan, node: str, desktops: int) -> Any:
        """Make an actor on a node, and only there."""
        affinity = load("ray.util.scheduling_strategies", "ray").NodeAffinitySchedulingStrategy
        actor = self._ray.remote(max_restarts=-1, max_task_retries=0, num_cpus=0)(DesktopHost)
        here = actor.options(resources={_RESOURCE: desktops}, scheduling_strategy=affinity(node, soft=False))
        # Each node takes the ledger's password from its own environment, because the plan is sent over the network.
        theirs = dataclasses.replace(plan, desktops=desktops, ledger=ledger_name(plan.ledger))
        return here.remote(theirs, self._make, __version__)

    async def serve(self, host: Any, abandon: Callable[[str], int], tell: Tell) -> bool:
        """Have a host play, with as many restarts as it takes.

        Returns:
            False if its node is dead, or will never be usable.

        Raises:
            EpisodeError, LedgerError: The worker's error.
        """
        async with Tunnel(host) as tunnel:
            return await self._serve(host, abandon, tell, tunnel)

    async def _serve(self, host: Any, abandon: Callable[[str], int], tell: Tell, tunnel: Tunnel) -> bool:
        name = ""
        while True:
            try:
                now = await host.open.remote()
                if name not in {"", now}:
                    await asyncio.to_thread(abandon, name)
                name = now
                async for reference in host.play.options(num_returns="streaming").remote(name):
                    news = await reference
                    if news.kind == "page":
                        news = dataclasses.replace(news, text=await tunnel.link(news.text))
                    tell(news)
            except self._actors.RayTaskError as error:
                if not isinstance(error.cause, _Restarted):
                    raise error.cause from None
            except self._actors.ActorUnavailableError:
                # The process or the node has died, or the network is slow: the next answer shows which.
                await asyncio.sleep(_LOOK)
            except (self._actors.RayActorError, self._actors.ActorUnschedulableError):
                if name:
                    await asyncio.to_thread(abandon, name)
                return False
            else:
                return True

    def kill(self, host: Any) -> None:
        """End its process for good."""
        self._ray.kill(host)


class _Cluster:
    """The hosts of one run."""

    def __init__(self, engine: RayEngine, plan: Plan, abandon: Callable[[str], int], tell: Tell) -> None:
        self._engine = engine
        self._plan = plan
        self._abandon = abandon
        self._tell = tell
        self._hosts: dict[str, Any] = {}
        self._lost: set[str] = set()
        self._serving: dict[str, asyncio.Task[bool]] = {}

    async def run(self, stop: Stop) -> None:
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(stopped.set)

        unsubscribe = stop.subscribe(wake)
        try:
            await self._play(stopped)
        finally:
            unsubscribe()
            await self._end(stop.reason or "the run is over")

    async def _end(self, reason: str) -> None:
        """Have everything given back and closed; a host that does not answer is killed."""
        asked = {node: asyncio.ensure_future(host.stop.remote(reason)) for node, host in self._hosts.items()}
        if asked:
            await asyncio.wait(asked.values(), timeout=_ANSWER)
        answering = {node for node, answer in asked.items() if answer.done() and answer.exception() is None}
        if playing := [self._serving[node] for node in answering]:
            await asyncio.wait(playing, timeout=_GRACE)
        waiting = [*self._serving.values(), *asked.values()]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await asyncio.gather(*(self._hosts[node].close.remote() for node in answering), return_exceptions=True)
        for host in self._hosts.values():
            self._engine.kill(host)

    async def _play(self, stopped: asyncio.Event) -> None:
        """Run until one worker reports that all is done, or until the stop."""
        loop = asyncio.get_running_loop()
        stopping = asyncio.create_task(stopped.wait())
        had_nodes, alone_since = False, loop.time()
        try:
            while not stopping.done():
                await self._take_new_nodes(stopping)
                if stopping.done():
                    return
                if self._serving:
                    had_nodes, alone_since = True, loop.time()
                elif not had_nodes:
                    raise EpisodeError(f"no node of the cluster has desktops: {_HOW_TO_START}")
                elif loop.time() - alone_since > _PATIENCE:
                    raise EpisodeError("all nodes that had desktops are gone: start some, and run again to go on")
                waited, _ = await asyncio.wait(
                    [stopping, *self._serving.values()], timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED
                )
                for node, task in list(self._serving.items()):
                    if task in waited:
                        if task.result():
                            return
                        # Ray never uses a node's id again.
                        self._lost.add(node)
                        del self._serving[node], self._hosts[node]
        finally:
            stopping.cancel()

    async def _take_new_nodes(self, stopping: asyncio.Task[Any]) -> None:
        # In a thread: Ray waits for the cluster's head, and the loop must handle news and a stop meanwhile.
        looking = asyncio.create_task(asyncio.to_thread(self._engine.nodes, self._plan))
        try:
            await asyncio.wait([stopping, looking], return_when=asyncio.FIRST_COMPLETED)
            found = looking.result() if looking.done() else {}
        finally:
            looking.cancel()
        for node, desktops in found.items():
            if node not in self._hosts and node not in self._lost:
                host = self._hosts[node] = self._engine.host(self._plan, node, desktops)
                self._serving[node] = asyncio.create_task(self._engine.serve(host, self._abandon, self._tell))


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the signal handlers: Ray's own handler of SIGTERM would end this process without giving anything back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
