"""Request mode: one `Runner.run_async`, in a task of its own, from first event to terminal chunk."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage] -- the documented path
)
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.runners import Runner
from google.adk.telemetry.context import TelemetryConfig
from google.genai import types

from ..chunk_log import ChunkLog
from ..protocol.chunks import AnyChunk, encode_chunks
from .translator import ArtifactFile, Translator

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What to run, for whom."""

    user_id: str
    chat_id: str
    message_id: str
    content: types.Content
    run_config: RunConfig
    state_delta: dict[str, Any] | None
    files_url: str


class RequestRun:
    """A run that belongs to its session: readers come and go, it goes on."""

    def __init__(
        self,
        runner: Runner,
        request: RunRequest,
        translator: Translator,
        log: ChunkLog,
        on_end: Callable[[], object],
    ) -> None:
        self.log = log
        self._on_end = on_end
        self._runner = runner
        self._request = request
        self._translator = translator
        self._abort = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._write(self._translator.start(self._request.message_id))
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream run {self.log.segment}")

    async def stop(self) -> None:
        """End the run for good: ADK closes the model and seals open calls before the task is cancelled."""
        self._abort.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=5)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _drive(self) -> None:
        last_words = self._translator.abort
        try:
            await self._consume_in_session()
            if not self._abort.is_set():
                last_words = self._translator.finish
        except Exception as error:
            _log_failure(error, self.log.segment)
            last_words = partial(self._translator.fail, error)
        finally:
            self._on_end()  # first: a client that reads the last chunk may send its next turn at once
            self._write(last_words())
            self.log.close()

    async def _consume_in_session(self) -> None:
        try:
            await self._consume()
        except SessionNotFoundError:  # a runner of the user's own that does not create sessions
            await self._runner.session_service.create_session(
                app_name=self._runner.app_name,
                user_id=self._request.user_id,
                session_id=self._request.chat_id,
            )
            await self._consume()

    async def _consume(self) -> None:
        request = self._request
        events = self._runner.run_async(
            user_id=request.user_id,
            session_id=request.chat_id,
            new_message=request.content,
            state_delta=request.state_delta,
            run_config=request.run_config,
            abort_signal=self._abort,
        )
        async with aclosing(events):
            async for event in events:
                if event.partial:  # nearly all of them, and never with artifacts
                    self._write(self._translator.feed(event))
                else:
                    self._write(self._translator.feed(event, await self._artifacts(event.actions.artifact_delta)))

    def _write(self, chunks: list[AnyChunk]) -> None:
        if chunks:
            self.log.append(encode_chunks(chunks))

    async def _artifacts(self, delta: Mapping[str, int]) -> dict[str, ArtifactFile] | None:
        service = self._runner.artifact_service
        if not delta or service is None:
            return None
        files: dict[str, ArtifactFile] = {}
        for filename, version in delta.items():
            saved = await service.get_artifact_version(
                app_name=self._runner.app_name,
                user_id=self._request.user_id,
                session_id=self._request.chat_id,
                filename=filename,
                version=version,
            )
            media_type = (saved.mime_type if saved else None) or "application/octet-stream"
            url = f"{self._request.files_url}/{quote(filename, safe='')}?version={version}"
            files[filename] = ArtifactFile(url, media_type)
        return files


def _log_failure(error: Exception, segment: str) -> None:
    """Where a run failed, without what it said: messages of exceptions quote prompts, arguments and keys."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "unknown"
    logger.error("run %s failed: %s at %s", segment, type(error).__qualname__, where)
    logger.debug("details of run %s", segment, exc_info=error)


def effective_run_config(base: RunConfig | None, changes: Mapping[str, Any], metadata: dict[str, Any]) -> RunConfig:
    """The user's configuration with what every run of ours needs: streaming, telemetry resolved, our ids."""
    config = base or RunConfig()
    updates: dict[str, Any] = dict(changes)
    if "streaming_mode" not in config.model_fields_set:
        updates.setdefault("streaming_mode", StreamingMode.SSE)
    if config.telemetry is None:
        updates.setdefault("telemetry", resolved_telemetry())
    updates["custom_metadata"] = {
        **(config.custom_metadata or {}),
        **(updates.get("custom_metadata") or {}),
        **metadata,
    }
    return config.model_copy(update=updates)


def resolved_telemetry() -> TelemetryConfig:
    """What ADK would read from the environment for every single delta, read once. Spans and logs stay the same."""
    from_environment = TelemetryConfig()
    experimental = from_environment.should_use_experimental_genai_semconv
    # A variable of its own outranks the switch below, so it is left to ADK.
    features_named = bool(os.environ.get("ADK_EXPERIMENTAL_TELEMETRY_FEATURES"))
    return TelemetryConfig(
        genai_semconv_stability_opt_in="experimental" if experimental else "stable",
        adk_experimental_telemetry_opt_in=(
            None if features_named else from_environment.should_emit_experimental_telemetry
        ),
    )
