"""Work of a request that goes on after its headers were sent, with or without its client."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ..adk.run import RESTARTING
from ..chunk_log import Reading
from ..errors import BridgeError, NotFound
from .closed_logs import failed_log

logger = logging.getLogger(__name__)

Opened = Reading | asyncio.Task[Reading]
"""What a request reads: now, or when the task is done. The client gets headers and pings until then."""


class BackgroundWork:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Reading]] = set()

    def start(
        self, work: Coroutine[Any, Any, Reading], start_id: str | None, failure: str | None = None
    ) -> asyncio.Task[Reading]:
        """Failures go into the stream, since its headers are sent. `failure`: the text for all of them but
        `NotFound`."""

        async def read() -> Reading:
            try:
                return await work
            except asyncio.CancelledError:  # by `drain`
                return Reading(failed_log(start_id, RESTARTING))
            except NotFound as error:
                return Reading(failed_log(start_id, str(error)))
            except BridgeError as error:
                return Reading(failed_log(start_id, failure or str(error)))
            except Exception as error:
                logger.error("a turn failed: %s", type(error).__qualname__)
                logger.debug("details", exc_info=error)
                return Reading(failed_log(start_id, failure or BridgeError.public_text))

        task = asyncio.create_task(read(), name="adk-stream turn")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def drain(self) -> None:
        """Cancel all of it. Each stream ends with the reason."""
        await asyncio.sleep(0)  # a task that has not started yet cannot say why it ended
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
