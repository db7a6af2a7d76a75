"""Harbor's trials in containers of deskhand, and an agent that works on their desktop.

    $ HERE=deskhand.episodes.environments.harbor
    $ harbor run -p TASK -e $HERE:DesktopEnvironment --ek network=none -a $HERE:DesktopAgent -m openai/gpt-5.4

Harbor imports this module, which needs Harbor 0.25 and Python 3.12. Its interfaces are
`harbor.environments.base.BaseEnvironment` and `harbor.agents.base.BaseAgent` of that version.

This module owns the way from Harbor's calls to a desktop. How an image is made is in `deskhand.episodes.tasks.harbor.image`.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harbor.environments.base import ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities

from deskhand._native import __version__
from deskhand.aio.desktop import AsyncDesktop
from deskhand.desktop.access import latest
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.tasks.harbor.folder import COMPOSE, DOCKERFILE, digest_tree
from deskhand.episodes.tasks.harbor.image import build_image, image_name
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits
from deskhand.errors import EpisodeError
from deskhand.launchers.docker.spec import Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from harbor.models.agent.context import AgentContext

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.tasks.context import TaskContext

    # Harbor is not there where types are checked.
    class BaseEnvironment:
        """Harbor's."""

        def __init__(self, *args: Any, **options: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    class BaseAgent:
        """Harbor's."""

        def __init__(self, *args: Any, **options: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
else:
    from harbor.agents.base import BaseAgent
    from harbor.environments.base import BaseEnvironment

_FORM = "WIDTHxHEIGHT"
# Harbor's own limits end what takes too long.
_NO_LIMIT = 30 * 24 * 3600.0
_OUTPUT = 16 << 20
_READY = 120.0
_MOST_MEMORY = 2 << 30
# Commands of Harbor's own are for root, where it empties and packs folders.
_OURS = {None, "root", 0, "user", 1000}
# What Harbor calls the makers of models, and deskhand their SDKs.
_SDKS = {"gemini": "google"}


class DesktopEnvironment(BaseEnvironment):
    """A trial's container, with a desktop on top of the task's image.

    Everything runs as the desktop's user, without the rights of root, and most of the image is read-only. A task that asks for
    the public network is refused, unless `network` says what it gets.

    Args:
        size: Pixels of the screen.
        network: What a task that asks for the public network gets: `none`, `bridge` (all of it, that of this machine as well),
            or the hosts that it may reach, with commas. By default such a task is refused.
    """

    def __init__(self, *args: Any, size: str = "1280x800", network: str = "", **options: Any) -> None:
        width, _, height = size.partition("x")
        if not (width.isdecimal() and height.isdecimal()):
            raise ValueError(f"size is {_FORM}, such as 1280x800, not {size!r}")
        self._size = int(width), int(height)
        self._public = network
        self._opened: Desktop | None = None
        super().__init__(*args, **options)

    @staticmethod
    def type() -> str:
        """Its name in Harbor's results."""
        return "deskhand"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """What it can do."""
        return EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
        )

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """Which limits it can set."""
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    @property
    def desktop(self) -> AsyncDesktop:
        """The trial's desktop.

        Raises:
            RuntimeError: The environment has not started, or has been stopped.
        """
        if self._opened is None:
            raise RuntimeError(f"the environment {self.session_id} has no desktop: it does not run")
        # An agent's part may have ended with a new object for it.
        return AsyncDesktop(latest(self._opened))

    async def start(self, force_build: bool) -> None:  # noqa: FBT001 # as Harbor calls it
        """Build the image, unless it is there, and start the desktop.

        Raises:
            TaskError: The image cannot be built.
            LaunchFailed: There is no engine, or the desktop does not come up.
        """
        if force_build:
            self.logger.warning("force_build has no effect: an image is named after the content of its folder")
        config, name = self.task_env_config, self.environment_name
        directory, built = config.workdir or "", config.docker_image or ""
        digest = b"" if built else await asyncio.to_thread(digest_tree, self.environment_dir, name)
        image = image_name(built.encode() or digest, directory)
        source = built or (self.environment_dir, digest)
        await asyncio.to_thread(
            build_image, name, image, source, directory=directory, seconds=config.build_timeout_sec or 600.0
        )
        memory, cpus = self._effective_memory_mb, self._effective_cpus
        limits = Limits(memory=_MOST_MEMORY if memory is None else memory << 20, cpus=float(cpus or 2.0))
        desktop = await AsyncDesktop.launch(
            "docker",
            size=self._size,
            image=image,
            network=self._network(),
            env=self._startup_env(),
            limits=limits,
            timeout=_READY,
        )
        self._opened = desktop.desktop
        await self.ensure_dirs(["/logs/agent", "/logs/verifier", "/logs/artifacts"], chmod=False)
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:  # noqa: FBT001 # as Harbor calls it
        """End the desktop and its container; the image stays, also with `delete`."""
        del delete
        opened, self._opened = self._opened, None
        if opened is not None:
            await asyncio.to_thread(latest(opened).close)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: float | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command as the desktop's user.

        Raises:
            RuntimeError: It takes too long, or is for another user.
        """
        self._check_user(self._resolve_user(user))
        ended = await self.desktop.machine.run(
            command,
            cwd=cwd or self.task_env_config.workdir or None,
            env=self._merge_env(env),
            timeout=timeout_sec or _NO_LIMIT,
            limit=_OUTPUT,
        )
        if ended.timed_out:
            raise RuntimeError(f"the command took more than {timeout_sec or _NO_LIMIT:g} s")
        return ExecResult(stdout=ended.stdout, stderr=ended.stderr, return_code=ended.exit_code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file into the container."""
        await self._make_parent(target_path)
        await self._copied(self.desktop.machine.copy_in(source_path, target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy what a directory has into one of the container."""
        await self._make_parent(target_dir)
        await self._copied(self.desktop.machine.copy_in(source_dir, target_dir))

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file out of the container."""
        await self._download(source_path, Path(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy what a directory of the container has into one of this machine; files of the same names are replaced."""
        await self._download(source_dir, Path(target_dir))

    # --- internals ---

    def _validate_definition(self) -> None:
        """Raises what Harbor expects where the task cannot run here."""
        folder = self.environment_dir
        for each in COMPOSE:
            if (folder / each).exists():
                raise ValueError(f"{each}: a desktop is one container, and Compose is not carried out")
        if not self.task_env_config.docker_image and not (folder / DOCKERFILE).is_file():
            raise FileNotFoundError(f"{folder} has no {DOCKERFILE}, and the task names no docker_image")
        if self._network_is_public and not self._public:
            raise ValueError(
                "the task gets the public network, which a desktop does not: choose with --ek network=none, "
                "--ek network=HOST,HOST or --ek network=bridge"
            )

    def _reset_dirs_user(self) -> None:
        """Harbor's own folders belong to the desktop's user."""

    def _network(self) -> str | Sequence[str]:
        if self._network_is_allowlist:
            return tuple(self._network_policy.allowed_hosts) or "none"
        if not self._network_is_public:
            return "none"
        return self._public if self._public in {"none", "bridge"} else self._public.split(",")

    def _check_user(self, user: str | int | None) -> None:
        if user not in _OURS:
            raise RuntimeError(f"no command runs as {user}: everything here runs as the desktop's user")

    async def _make_parent(self, path: str) -> None:
        parent = str(Path(path).parent)
        ended = await self.desktop.machine.run('mkdir -p -- "$PARENT"', env={"PARENT": parent})
        if ended.exit_code != 0:
            raise RuntimeError(f"{parent} cannot be made: {ended.stderr.strip() or ended.outcome}")

    async def _copied(self, copying: Awaitable[Sequence[str]]) -> None:
        for each in await copying:
            self.logger.warning("not copied: %s", each)

    async def _download(self, source: str, target: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "copy"
            await self._copied(self.desktop.machine.copy_out(source, copy))
            target.parent.mkdir(parents=True, exist_ok=True)
            if copy.is_dir():
                await asyncio.to_thread(shutil.copytree, copy, target, symlinks=True, dirs_exist_ok=True)
            else:
                await asyncio.to_thread(shutil.copyfile, copy, target)


class DesktopAgent(BaseAgent):
    """An agent of deskhand, which works on the desktop of a `DesktopEnvironment`.

    Args:
        agent: Its name as for `deskhand run --agent`, such as `openai+elements:gpt-5.4` or `module:function`. By default that
            of Harbor's model, as in `openai/gpt-5.4`.
        steps: How many calls may act.
    """

    def __init__(self, *args: Any, agent: str = "", steps: int = 1000, **options: Any) -> None:
        super().__init__(*args, **options)
        maker, _, model = (self.model_name or "").partition("/")
        self._agent = agent or (f"{_SDKS.get(maker, maker)}:{model}" if model else "")
        if not self._agent:
            raise ValueError("no model: give Harbor -m openai/MODEL, or --ak agent=NAME")
        self._steps = int(steps)

    @staticmethod
    def name() -> str:
        """Its name in Harbor's results."""
        return "deskhand"

    def version(self) -> str:
        """Its version in Harbor's results."""
        return __version__

    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing is installed: the desktop is there.

        Raises:
            TypeError: The environment has none.
        """
        if not isinstance(environment, DesktopEnvironment):
            wanted = f"-e {DesktopEnvironment.__module__}:{DesktopEnvironment.__qualname__}"
            raise TypeError(f"this agent works on a desktop of deskhand: {wanted}")

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Do the task, and tell Harbor what that took.

        Raises:
            EpisodeError: The agent failed, or the desktop was lost.
        """
        stop = Stop()
        task = _Instruction(instruction)
        limits = TaskLimits(steps=self._steps, seconds=_NO_LIMIT)
        key = Key(task.name, "", 0, 0)
        desktop = _Given(environment.desktop.desktop)
        trial = asyncio.ensure_future(
            asyncio.to_thread(attempt, task, key, desktop, self._agent, limits=limits, stop=stop)
        )
        try:
            result = await asyncio.shield(trial)
        except asyncio.CancelledError:
            # Harbor's time is up.
            stop("Harbor ended the agent's part")
            await trial
            raise
        context.n_input_tokens = result["tokens"]["input"]
        context.n_output_tokens = result["tokens"]["output"]
        context.cost_usd = result["cost"]
        kept = ("answer", "cause", "detail", "steps", "actions", "looks", "times")
        context.metadata = {name: result[name] for name in kept}
        if result["cause"] not in {None, Cause.AGENT_BUDGET}:
            raise EpisodeError(f"the agent's part ended with {result['cause']}: {result['detail']}")


class _Instruction(Task):
    """What Harbor gives an agent to do. Harbor grades it."""

    name = "harbor"
    evaluates_once = True

    def __init__(self, instruction: str) -> None:
        self._instruction = instruction

    def instruction(self, parameters: Mapping[str, object]) -> str:
        del parameters
        return self._instruction

    def setup(self, context: TaskContext) -> None:
        del context

    def evaluate(self, context: TaskContext) -> Grade:
        del context
        return Grade(0.0, "Harbor grades it")

    def oracle(self, context: TaskContext) -> str | None:
        del context
        raise EpisodeError("a task of Harbor is solved by Harbor's own agent: -a oracle")


class _Given:
    """The desktop of an environment, as a source of desktops."""

    def __init__(self, desktop: Desktop) -> None:
        self._desktop = desktop

    def acquire(self, timeout: float | None = None) -> AbstractContextManager[Desktop]:
        del timeout
        return contextlib.nullcontext(self._desktop)
