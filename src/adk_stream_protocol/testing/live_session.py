"""Both ends of a scripted live session: ADK's connection, and the methods of the test that plays the model."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from .models import Said, call, is_responses, parts_of, words_of
from .received import Kind, Received

if TYPE_CHECKING:
    from google.adk.models.base_llm_connection import RealtimeInput  # from 2.12 on

Family = Literal["2.5", "3"]
Emitted = LlmResponse | types.LiveServerToolCallCancellation | Exception | None
_MAY_BE_SKIPPED = ("history", "audio", "video", "activity_start", "activity_end", "audio_stream_end")


class LiveSession:
    """The model's end.

    It emits what ADK's connection to Gemini emits: words one by one, and the complete text again when the turn ends, is
    interrupted, or goes on with a call or a thought.

    Families: with Gemini 2.5 a turn ends with its calls, and what the model says about their results is another turn.
    With Gemini 3 the turn goes on after the calls, and ends only once.

    | Attributes | |
    |---|---|
    | `request`, `number`, `family`, `_stamps` | what it was opened with |
    | `received`, `contents`, `_inbox`, `_expecting` | what ADK has sent |
    | `connection`, `emitted` | what ADK reads |
    | `_text`, `_is_thought`, `_heard`, `_spoken` | what is being said, and not complete yet |
    | `_task`, `_failure` | the coroutine that plays the model |
    """

    def __init__(
        self,
        request: LlmRequest,
        *,
        number: int = 1,
        family: Family = "2.5",
        model_version: str | None = None,
        live_session_id: str | None = None,
    ) -> None:
        self.request = request
        self.number = number
        self.family: Family = family
        self.received: list[Received] = []
        """Everything that ADK has sent so far, whether a test expected it or not."""
        self.contents: list[types.Content] = []
        """The conversation as the model knows it."""
        self.connection = _Connection(self)
        self.emitted: asyncio.Queue[Emitted] = asyncio.Queue()
        self._stamps: dict[str, Any] = {"model_version": model_version, "live_session_id": live_session_id}
        self._inbox: asyncio.Queue[Received] = asyncio.Queue()
        self._expecting = False
        self._text = ""
        self._is_thought = False
        self._heard = ""
        self._spoken = ""
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    # -- what ADK sends ------------------------------------------------------------------------------------------------

    async def expect(self, kind: Kind | None = None) -> Received:
        """Wait for what ADK sends next: anything, or something of this kind. Then history, audio and activity before it
        are skipped; anything else before it is a failure."""
        while True:
            self._expecting = True
            try:
                received = await self._inbox.get()
            finally:
                self._expecting = False
            if kind in (None, received.kind):
                return received
            if received.kind not in _MAY_BE_SKIPPED:
                raise AssertionError(f"The model expects {kind}, and gets {received}.")

    async def expect_text(self) -> str:
        return (await self.expect("content")).text

    async def expect_responses(self) -> list[types.FunctionResponse]:
        return (await self.expect("response")).responses

    async def expect_response(self) -> types.FunctionResponse:
        (response,) = await self.expect_responses()
        return response

    async def expect_audio(self) -> types.Blob:
        return (await self.expect("audio")).blob or types.Blob()

    # -- what the model says -------------------------------------------------------------------------------------------

    async def answer(self, said: Said) -> list[types.FunctionCall]:
        """Say a whole reply, as in a script, and end the turn. Returns the calls that the reply makes."""
        if isinstance(said, Exception):
            raise said
        if is_responses(said):
            for response in said:
                await self.emit(response)
            calls = [part.function_call for response in said for part in _final_parts(response) if part.function_call]
            if not said[-1].turn_complete and (self.family == "2.5" or not calls):
                await self.turn_complete()
            return calls
        for part in parts_of(said):
            if part.text:
                await self.say(part.text, thought=bool(part.thought))
            elif not part.function_call:
                await self._emit(content=types.Content(role="model", parts=[part]))
        if made := [part for part in parts_of(said) if part.function_call]:
            return await self.calls(*made)
        await self.turn_complete()
        return []

    async def say(self, said: str, *, thought: bool = False) -> None:
        """Say it word by word. The complete text follows when Gemini's connection would give it."""
        if self._is_thought != thought:
            await self._whole_text()
        self._is_thought = thought
        for word in words_of(types.Part(text=said, thought=thought or None)):
            self._text += word.text or ""
            await self._emit(content=types.Content(parts=[word]), partial=True)  # the service gives no role

    async def call(self, name: str, /, **arguments: Any) -> types.FunctionCall:
        (made,) = await self.calls(call(name, **arguments))
        return made

    async def calls(self, *made: types.Part) -> list[types.FunctionCall]:
        """Make several calls in one message, which ends the turn of a 2.5 model."""
        await self._whole_text()
        if self.family == "2.5":
            await self._whole_transcripts()
        await self._emit(content=types.Content(role="model", parts=list(made)))
        if self.family == "2.5":
            await self.turn_complete()
        return [part.function_call for part in made if part.function_call]

    async def audio(self, samples: bytes, rate: int = 24_000) -> None:
        blob = types.Blob(data=samples, mime_type=f"audio/pcm;rate={rate}")
        await self._emit(content=types.Content(parts=[types.Part(inline_data=blob)]))

    async def input_transcript(self, heard: str, *, finished: bool = False) -> None:
        """What the model has understood. Gemini 3 sends it once, complete."""
        if self.family == "3":
            await self._emit(input_transcription=types.Transcription(text=heard, finished=True), partial=False)
            return
        self._heard += heard
        await self._emit(input_transcription=types.Transcription(text=heard, finished=False), partial=True)
        if finished:
            await self._whole_transcripts(spoken=False)

    async def output_transcript(self, spoken: str, *, finished: bool = False) -> None:
        self._spoken += spoken
        await self._emit(output_transcription=types.Transcription(text=spoken, finished=False), partial=True)
        if finished:
            await self._whole_transcripts(heard=False)

    async def interrupted(self) -> None:
        """The user has interrupted the model. Gemini ends the turn next."""
        await self._whole_transcripts()
        if self._text:
            await self._whole_text(interrupted=True)
        else:
            await self._emit(interrupted=True)

    async def turn_complete(self, **fields: Any) -> None:
        await self._whole_transcripts()
        await self._whole_text()
        if self.family == "3":
            fields = {"grounding_metadata": types.GroundingMetadata(), **fields}
        await self._emit(turn_complete=True, **fields)

    async def usage(self, prompt: int, response: int) -> None:
        await self._emit(
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=prompt,
                candidates_token_count=response,
                total_token_count=prompt + response,
            )
        )

    async def resumption_handle(self, handle: str) -> None:
        """Send a handle with which ADK can open a new connection to this conversation."""
        update = types.LiveServerSessionResumptionUpdate(new_handle=handle, resumable=True)
        await self._emit(live_session_resumption_update=update)

    async def cancel(self, *call_ids: str) -> None:
        """Take calls back, as Gemini does with a `toolCallCancellation`. ADK's own connection drops that."""
        await asyncio.sleep(0)
        self.emitted.put_nowait(types.LiveServerToolCallCancellation(ids=list(call_ids)))

    async def go_away(self) -> None:
        await self._emit(go_away=types.LiveServerGoAway(time_left="5s"))

    async def emit(self, response: LlmResponse) -> None:
        """Send any response, unchanged."""
        await asyncio.sleep(0)  # lets other tasks run: a model that never waits would block them
        if not response.partial:
            if response.input_transcription:
                self._note("user", types.Part(text=response.input_transcription.text))
            if response.output_transcription:
                self._note("model", types.Part(text=response.output_transcription.text))
            self._note("model", *(part for part in _final_parts(response) if not part.inline_data))
        self.emitted.put_nowait(response)

    def fail(self, failure: Exception) -> None:
        """Break the connection."""
        self.emitted.put_nowait(failure)

    def end(self) -> None:
        """End the session without an error."""
        self.emitted.put_nowait(None)

    async def taken(self) -> None:
        """Wait until everything that the model has said was read, and more is asked for. A bridge reads ahead, so ADK
        may take it later."""
        await self.emitted.join()

    async def _emit(self, **fields: Any) -> None:
        await self.emit(LlmResponse(**{**self._stamps, **fields}))

    async def _whole_text(self, *, interrupted: bool = False) -> None:
        if self._text:
            part = types.Part(text=self._text, thought=self._is_thought or None)
            self._text = ""
            content = types.Content(role="model", parts=[part])
            # Gemini's connection gives no model version here.
            await self._emit(content=content, partial=False, interrupted=interrupted, model_version=None)

    async def _whole_transcripts(self, *, heard: bool = True, spoken: bool = True) -> None:
        if heard and self._heard:
            whole = types.Transcription(text=self._heard, finished=True)
            self._heard = ""
            await self._emit(input_transcription=whole, partial=False)
        if spoken and self._spoken:
            whole = types.Transcription(text=self._spoken, finished=True)
            self._spoken = ""
            await self._emit(output_transcription=whole, partial=False)

    def _note(self, role: str, *parts: types.Part) -> None:
        if parts:
            self.contents.append(types.Content(role=role, parts=list(parts)))

    # -- the test that plays it ----------------------------------------------------------------------------------------

    @contextmanager
    def played_by(self, server: Callable[["LiveSession"], Awaitable[None]]) -> Generator[None, None, None]:
        """Lets `server` play the model while one connection is open."""
        self._task = asyncio.create_task(self._play(server))
        try:
            yield
        finally:
            self.close()
            if not self._expecting:
                self._task.cancel()

    async def finished(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task})
        if self._failure is not None:
            raise self._failure

    async def _play(self, server: Callable[["LiveSession"], Awaitable[None]]) -> None:
        try:
            await server(self)
        except Exception as failure:
            self._failure = failure
            self.fail(failure)

    def close(self) -> None:
        if not any(received.kind == "close" for received in self.received):
            self.take(Received("close"))

    def take(self, received: Received) -> None:
        """Receive what ADK sends."""
        self.received.append(received)
        self.contents += received.contents
        self._inbox.put_nowait(received)


class _Connection(BaseLlmConnection):
    def __init__(self, session: LiveSession) -> None:
        self._session = session
        self._ended = False
        self.on_tool_call_cancellation: Callable[[Sequence[str]], None] = lambda _: None

    async def send_history(self, history: list[types.Content]) -> None:
        self._session.take(Received("history", tuple(history)))

    async def send_content(self, content: types.Content) -> None:
        await self._send_content(content)

    async def _send_content(self, content: types.Content, *, partial: bool = False) -> None:
        if not content.parts:
            raise AssertionError("Gemini's connection takes no empty content.")
        responses = [part.function_response for part in content.parts if part.function_response]
        if any(response.id is None for response in responses):
            raise ValueError("Gemini's API takes no function response without an id.")
        kind: Kind = "response" if len(responses) == len(content.parts) else "content"
        self._session.take(Received(kind, (content,), partial=partial))

    async def send_realtime(self, blob: "RealtimeInput") -> None:
        match blob:
            case types.Blob():
                kind: Kind = "audio" if (blob.mime_type or "").startswith("audio/") else "video"
                self._session.take(Received(kind, blob=blob))
            case types.ActivityStart():
                self._session.take(Received("activity_start"))
            case types.ActivityEnd():
                self._session.take(Received("activity_end"))
            case types.LiveClientRealtimeInput():
                self._session.take(Received("audio_stream_end"))

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """The responses of one turn. If there are none, the connection has ended."""
        while not self._ended:
            response = await self._session.emitted.get()
            try:
                if isinstance(response, Exception):
                    raise response
                if isinstance(response, types.LiveServerToolCallCancellation):
                    self.on_tool_call_cancellation(response.ids or [])
                    continue
                if response is None:
                    self._ended = True
                    return
                yield response
            finally:
                self._session.emitted.task_done()
            if response.turn_complete:
                return

    async def close(self) -> None:
        self._session.close()
        self._session.end()


def _final_parts(response: LlmResponse) -> list[types.Part]:
    return [] if response.partial or not response.content else response.content.parts or []
