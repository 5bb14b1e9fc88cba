"""A live model that answers, calls, falls silent, is interrupted and hands over as it likes."""

import asyncio
import itertools
from collections import Counter
from random import Random
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_stream_protocol.testing import LiveSession, Said, ScriptedLiveModel
from adk_stream_protocol.testing.live_session import Family

HERE = "Here I am."
OTHER = {"helper": "clerk", "clerk": "helper"}


class Mind:
    """What the models of one chat have in common."""

    def __init__(self, random: Random, happened: Counter[str]) -> None:
        self.happened = happened
        self.sessions: list[LiveSession] = []
        """Every connection, the newest last."""
        self.calls: list[str] = []
        """The ids of all calls that were made in live mode."""
        self.withdrawn: set[str] = set()
        self.repeated: set[str] = set()
        """Ids that it has given to several calls."""
        self.repeats = True
        """It may do so. In a chat that was deleted and begun again the books could not tell them apart."""
        self.is_plain = False
        """From now on it only says that it is there."""
        self._random = random
        self._numbers = itertools.count(100)

    @property
    def session(self) -> LiveSession | None:
        """The open connection."""
        found = self.sessions[-1] if self.sessions else None
        return None if found is None or any(each.kind == "close" for each in found.received) else found

    def call(self, name: str, **arguments: Any) -> types.Part:
        call_id = f"call-{next(self._numbers)}"  # numbered: a seed gives the same storm again
        if self.repeats and self.calls and self._random.random() < 0.03:
            self.happened["model: repeats an id"] += 1
            call_id = self._random.choice(self.calls[-3:])
            self.repeated.add(call_id)
        return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=arguments))

    def reply(self, agent: str, request: LlmRequest) -> Said:
        """In both modes."""
        if self.is_plain:
            return HERE
        last = request.contents[-1] if request.contents else None
        is_result = last is None or any(part.function_response for part in last.parts or ())
        if is_result:
            return "That is that." if self._random.random() < 0.8 else [self.call("pay", amount=9)]
        if self._random.random() < 0.15:
            self.happened["transfer"] += 1
            return [self.call("transfer_to_agent", agent_name=OTHER[agent])]
        calls = [self.call("pay", amount=number) for number in range(self._random.choice([1, 1, 2, 0]))]
        for name in ("look", "pay_beside", "look_beside") if agent == "helper" else ("look",):
            if self._random.random() < 0.2:
                self.happened["tool beside the conversation"] += name.endswith("beside")
                calls.insert(self._random.randrange(len(calls) + 1), self.call(name))
        if self._random.random() < 0.03:
            self.happened["model: calls what is not there"] += 1
            calls.append(self.call("fly"))
        return calls or "Hello there, what can I do?"

    async def take_back(self, session: LiveSession) -> None:
        """One of its calls, perhaps one that has run. Gemini does that when it is interrupted."""
        call_id = self._random.choice(self.calls[-3:])
        self.withdrawn.add(call_id)
        await session.cancel(call_id)
        if self._random.random() < 0.5:
            await session.interrupted()
            await session.turn_complete()

    def listens_to(self) -> bool:
        """Whether a frame of voice is the end of something that was said."""
        return self._random.random() < 0.5

    def talks_on(self) -> bool:
        """Whether it says something when it is told that a call waits."""
        return not self.is_plain and self._random.random() < 0.2

    async def take_turn(self, session: LiveSession, said: Said) -> list[types.FunctionCall]:
        """Says it, in one of the ways of live models. Gives the calls that the model waits for."""
        way = "plain" if self.is_plain else self._random.choices([*_WAYS], [*_WAYS.values()])[0]
        if way != "plain":
            self.happened[f"model: {way}"] += 1
        if way in ("mute", "empty turn"):
            if way == "empty turn":
                await session.turn_complete()
            return []
        if way in ("hesitates", "interrupted", "interrupted and calls"):
            await session.say("Well, I ")
            await asyncio.sleep(self._random.choice([0, 1, 3]))
        elif way == "speaks":
            await session.output_transcript("Well, I ")
            await session.audio(b"\1\0" * 480)
            await asyncio.sleep(self._random.choice([0, 1]))
        if way.startswith("interrupted"):
            await session.interrupted()
            if way == "interrupted":
                await session.turn_complete()
                return []
            said = [self.call("pay", amount=7)]
        made = await session.answer(said)
        self.calls += [each.id or "" for each in made]
        return [each for each in made if not (each.name or "").endswith("beside")]


_WAYS = {
    "plain": 60, "hesitates": 15, "speaks": 8, "empty turn": 6, "interrupted": 5, "interrupted and calls": 5, "mute": 1,
}  # fmt: skip


class StormModel(ScriptedLiveModel):
    """The model of one agent."""

    _mind: Mind
    _agent: str

    def __init__(self, mind: Mind, agent: str, family: Family) -> None:
        super().__init__([lambda request: mind.reply(agent, request)] * 1000, family=family)
        self._mind, self._agent = mind, agent

    async def _follow_script(self, session: LiveSession) -> None:
        mind = self._mind
        mind.sessions.append(session)
        waiting: set[str | None] = set()
        while (received := await session.expect()).kind != "close":
            waiting -= {response.id for response in received.final_responses} | mind.withdrawn
            is_heard = received.kind == "audio" and mind.listens_to()
            if is_heard:
                mind.happened["utterance"] += 1
                await session.input_transcript("Pay, please", finished=True)
            talks_on = bool(received.responses) and not received.final_responses and mind.talks_on()
            if talks_on or is_heard or (received.asks_for_reply and not (waiting and received.kind == "response")):
                known = session.request.model_copy(update={"contents": list(session.contents)})
                waiting |= {call.id for call in await mind.take_turn(session, self.next_reply(known))}
