"""The engine without dependencies: one worker in this process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from deskhand.episodes.run.worker import Worker

if TYPE_CHECKING:
    from deskhand.episodes.play.supervision import Stop
    from deskhand.episodes.run.plan import Plan, Tell


class LocalEngine:
    """See `deskhand.episodes.run.engines.Engine`."""

    async def run(self, plan: Plan, *, stop: Stop, tell: Tell) -> None:
        """See `Engine.run`."""
        worker = Worker(plan, stop=stop, tell=tell)
        try:
            await worker.run()
        finally:
            await asyncio.shield(asyncio.to_thread(worker.close))
