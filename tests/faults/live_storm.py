"""One chat of one user whose tabs, model, network, clock and servers do anything in any order, and what must hold."""

import asyncio
import itertools
from collections import Counter
from random import Random
from typing import Any

import httpx
from google.adk.agents.run_config import RunConfig
from google.adk.sessions import InMemorySessionService
from google.genai import types
from websockets.exceptions import ConnectionClosedError

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Limits
from adk_stream_protocol.adk.live.talking_on import LiveWhileWaiting, is_pending_answer
from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey
from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.store.memory import MemoryStore
from faults.storm_bank import Bank
from faults.storm_model import HERE, Mind
from faults.storm_tab import CHAT_ID, Tab
from support.apps import app_of, user_of
from transports.live_apps import sound

CHAT = ChatKey("helper", "ann", CHAT_ID)
DEADLINE_S, GRACE_S = 120, 30
LIMITS = Limits(live_grace_s=GRACE_S)
SETTLED_S = LIMITS.live_silence_s + 30  # until a model that owes an answer is given up; shorter than the deadline


class Storm:
    """
    | About | Attributes |
    |---|---|
    | chance | `_random`, `_numbers`, `happened`, `trail` |
    | the server | `store`, `_sessions`, `_agent`, `_run_config`, `_while_waiting`, `mind`, `bridges`, `_app` |
    | the user | `tabs`, `everything`, `asked`, `_version` |
    | what runs | `work`, `_bank` |
    """

    def __init__(self, seed: int, happened: Counter[str]) -> None:
        self._random = random = Random(seed)
        self._numbers = itertools.count()
        self.happened = happened
        """How often each kind of thing has happened."""
        self.trail: list[str] = []
        self.store = MemoryStore(clock=asyncio.get_running_loop().time)
        self._sessions = InMemorySessionService()
        self.mind = Mind(random, happened)
        self._bank = Bank(random)
        self._agent = self._bank.new_agent(self.mind, random.choice(["2.5", "3"]))
        modality = random.choice([types.Modality.TEXT, types.Modality.AUDIO])
        self._run_config = RunConfig(response_modalities=[modality])
        self._while_waiting: LiveWhileWaiting = random.choice(["continue", "refuse"])
        self.bridges: list[ChatBridge] = []
        self._app: Any = None
        self._start_server()
        self._version: SdkVersion = random.choice([6, 7])
        self.tabs: list[Tab | None] = [None, None]
        self.everything: list[Tab] = []
        self.asked: dict[str, dict[str, Any]] = {}  # parts that a tab has read with a question, by the call's id
        self.work: list[asyncio.Task[Any]] = []

    # -- the server ---------------------------------------------------------------------------------------------------

    def _start_server(self) -> None:
        bridge = ChatBridge(
            self._agent,
            user_id=user_of,
            store=self.store,
            session_service=self._sessions,
            run_config=self._run_config,
            approvals=ApprovalPolicy(deadline_s=DEADLINE_S),
            limits=LIMITS,
            live_while_waiting=self._while_waiting,
        )
        self.bridges.append(bridge)
        self._app = app_of(bridge)

    async def restart(self) -> None:
        """All at once, or with the next server already there while the last one drains."""
        self._count("restart")
        old, tabs = self.bridges[-1], [tab for tab in self.tabs if tab is not None]
        is_rolling = self._random.random() < 0.5
        if not is_rolling:
            await old.drain()
            await asyncio.sleep(2)
            still_open = [request for tab in tabs for request in tab.open_requests()]
            assert not still_open, "a server that has drained has ended its streams"
        self._start_server()
        self.work.append(asyncio.create_task(old.aclose()))
        self.tabs = [None, None]
        for tab in tabs:
            await tab.leave()
        await self.reconnect()

    async def request(self, method: str, path: str = "", **content: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", timeout=None) as client:
            response = await client.request(method, f"/api/chat{path}", **content)
            assert response.status_code in (200, 204, 404, 409, 503), response.text
            return response

    def start_request(self, method: str, path: str = "", **content: Any) -> None:
        self.work.append(asyncio.create_task(self.request(method, path, **content)))

    # -- what may happen ----------------------------------------------------------------------------------------------

    async def step(self) -> None:
        kinds = {
            self.say: 8, self.decide: 16, self.decide_over_http: 5, self.decide_twice: 3,
            self.disconnect: 2, self.reconnect: 6, self.detach: 1, self.abort: 1,
            self.interrupt: 4, self.speak: 5, self.end_voice: 1,
            self.stop: 1, self.delete: 1, self.restart: 1,
            self.withdraw: 3, self.lose_connection: 4,
            self.wait: 2, self.breathe: 20, self.settle: 1,
        }  # fmt: skip
        for tab in filter(None, self.tabs):
            tab.read_turns()
        (kind,) = self._random.choices([*kinds], [*kinds.values()])
        self.trail.append(f"{asyncio.get_running_loop().time():.1f} {kind.__name__}")
        await kind()

    def tab(self) -> Tab | None:
        connected = [tab for tab in self.tabs if tab is not None]
        return self._random.choice(connected) if connected else None

    def _count(self, kind: str) -> None:
        self.happened[kind] += 1

    async def say(self) -> None:
        if (tab := self.tab()) is not None:
            self._count("words")
            if self._while_waiting == "continue" and await self._pending():
                self._count("words while a call waits")
            number = next(self._numbers)
            tab.send({"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": f"Pay {number}"}]})

    def decision(self) -> tuple[str, dict[str, Any]] | None:
        """What a person says who sees one of the cards, or an old one."""
        for tab in self.everything:
            tab.look_for_questions(self.asked)
        if not self.asked:
            return None
        part = self.asked[self._random.choice(sorted(self.asked))]
        said = {**part["approval"], "approved": self._random.random() < 0.6}
        answered = {**part, "state": "approval-responded", "approval": said}
        return answered.pop("messageId"), answered

    async def decide(self) -> None:
        tab, decision = self.tab(), self.decision()
        if tab is not None and decision is not None:
            self._count("decision over the socket")
            message_id, part = decision
            tab.send({"id": message_id, "role": "assistant", "parts": [part]}, messageId=message_id)

    async def decide_over_http(self) -> None:
        decision = self.decision()
        if decision is not None:
            self._count("decision over HTTP")
            message_id, part = decision
            message = {"id": message_id, "role": "assistant", "parts": [part]}
            body = {"id": CHAT_ID, "messages": [message], "messageId": message_id, "sdkVersion": self._version}
            self.start_request("POST", json=body)

    async def decide_twice(self) -> None:
        """Both doors at once."""
        await self.decide()
        await self.decide_over_http()

    async def disconnect(self) -> None:
        place = self._random.randrange(2)
        if (tab := self.tabs[place]) is not None:
            self._count("lost socket")
            self.tabs[place] = None
            await tab.leave()

    async def reconnect(self) -> None:
        place = self._random.randrange(2)
        if self.tabs[place] is None:
            self.tabs[place] = tab = Tab(self._app, self._version)
            self.everything.append(tab)
            await tab.enter()
            if self._random.random() < 0.5:
                tab.resume()

    async def detach(self) -> None:
        if (tab := self.tab()) is not None:
            self._count("detach")
            tab.detach()

    async def abort(self) -> None:
        if (tab := self.tab()) is not None and tab.open_requests():
            self._count("abort")
            tab.abort()

    async def interrupt(self) -> None:
        if (tab := self.tab()) is not None:
            self._count("interrupt in an answer" if tab.open_requests() else "interrupt")
            tab.client.tell("interrupt")

    async def speak(self) -> None:
        """A few frames of voice, perhaps while the other tab owns it."""
        if (tab := self.tab()) is not None:
            others = (other for other in self.tabs if other is not None and other is not tab)
            self._count("voice of a second tab" if any(other.owns_voice for other in others) else "voice")
            tab.speak(sound(20))
            if self._random.random() < 0.5:
                await self.breathe()
                tab.client.send_frame(sound(20))

    async def end_voice(self) -> None:
        if (tab := self.tab()) is not None:
            self._count("end of voice")
            tab.client.tell("voice-end")

    async def stop(self) -> None:
        self._count("stop")
        if (tab := self.tab()) is not None and self._random.random() < 0.5:
            tab.client.tell("stop")
        else:
            self.start_request("POST", f"/{CHAT_ID}/stop")

    async def delete(self) -> None:
        self._count("deletion")
        self.mind.repeats = False
        self.start_request("DELETE", f"/{CHAT_ID}")

    async def withdraw(self) -> None:
        """The model takes back one of its calls, perhaps one that has run."""
        if (session := self.mind.session) is not None and self.mind.calls:
            self._count("withdrawal")
            await self.mind.take_back(session)

    async def lose_connection(self) -> None:
        if (session := self.mind.session) is not None:
            if self._random.random() < 0.8:
                await session.resumption_handle(f"h{next(self._numbers)}")
                await self.breathe()
            if self._random.random() < 0.5:
                self._count("GoAway")
                await session.go_away()
            else:
                self._count("lost connection")
                session.fail(ConnectionClosedError(None, None))

    async def wait(self) -> None:
        await asyncio.sleep(self._random.choice([1, GRACE_S + 1, DEADLINE_S + 1]))

    async def breathe(self) -> None:
        for _ in range(self._random.choice([1, 3, 10, 40])):
            await asyncio.sleep(0)

    # -- what must hold -----------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """The watchdog. Nothing moves any more: whoever is connected knows why."""
        moved = None
        while moved != (moved := await self._movement()):
            await asyncio.sleep(SETTLED_S)
        await self.check_nobody_is_left_in_the_dark()

    async def _pending(self) -> list[CallRecord]:
        return [found for found in (await self.store.read(CHAT)).records if found.state == "pending"]

    async def _movement(self) -> tuple[int, int, int]:
        """How much has happened."""
        frames = sum(len(tab.client.everything) for tab in self.everything)
        received = sum(len(session.received) for session in self.mind.sessions)
        return frames, received, len(await self.store.audit(CHAT))

    async def check_nobody_is_left_in_the_dark(self) -> None:
        connected = [tab for tab in self.tabs if tab is not None]
        still_open = [tab.chunks(request) for tab in connected for request in tab.open_requests()]
        assert not still_open, f"frozen: streams are open, and neither a model nor a tool is at work: {still_open}"
        assert [tab.client.close_code for tab in connected] == [None] * len(connected)
        assert sum(tab.owns_voice for tab in connected) <= 1, "two tabs think that they own the voice"
        pending = await self._pending()
        for tab in self.everything:
            tab.look_for_questions(self.asked)
        history = await self.request("GET", f"/{CHAT_ID}/messages")
        shown = history.json() if history.status_code == 200 else []
        parts = (part for message in shown for part in message["parts"])
        seen = {part["toolCallId"] for part in parts if part.get("state") == "approval-requested"}
        unseen = [found for found in pending if found.call.call_id not in seen | self.asked.keys()]
        assert not unseen, f"frozen: nobody can see what is asked: {unseen}"

    async def check(self) -> None:
        await self.settle()
        await self.check_model_is_there()
        for tab in self.everything:
            tab.check_streams(self.asked)
        audit, paid = await self.store.audit(CHAT), self._bank.paid
        approved = {entry.call.call_id for entry in audit if entry.approved and entry.by == "ann"}
        decided = Counter(entry.call.call_id for entry in audit if entry.state in ("approved", "denied", "expired"))
        assert max(paid.values(), default=0) <= 1
        assert paid.keys() <= approved
        assert max(decided.values(), default=0) <= 1
        started = Counter(entry.call.call_id for entry in audit if entry.state == "started")
        states = {entry.call.call_id: entry.state for entry in audit}
        begun_in_vain = {call_id for call_id in started - paid if states[call_id] == "failed"}  # and told as such
        assert started == paid + Counter(begun_in_vain)
        withdrawn = {call_id for call_id, state in states.items() if state == "withdrawn"}
        assert not withdrawn & paid.keys()
        self.happened.update({"call withdrawn": len(withdrawn), "payment": len(paid)})
        self.check_what_the_model_was_told()
        for tab in self.everything:
            self.happened.update(f"error: {frame['code']}" for frame in tab.own("error"))

    def check_what_the_model_was_told(self) -> None:
        """That a call waits: at most once, and before its result."""
        for session in self.mind.sessions:
            told: dict[str | None, list[bool]] = {}
            for content in (content for received in session.received for content in received.contents):
                is_pending = is_pending_answer(content)
                self.happened["told that a call waits"] += is_pending
                for part in content.parts or ():
                    if part.function_response is not None and content.role == "user":
                        told.setdefault(part.function_response.id, []).append(is_pending)
            once = {call_id: answers for call_id, answers in told.items() if call_id not in self.mind.repeated}
            wrong = {call_id: answers for call_id, answers in once.items() if True in answers[1:]}
            assert not wrong, f"the model is told of a call that does not wait any more: {wrong}"

    async def check_model_is_there(self) -> None:
        """Whatever has happened, the user can go on."""
        self.mind.is_plain = True
        tab = Tab(self._app, self._version)
        self.everything.append(tab)
        await tab.enter()
        said: list[dict[str, Any]] = []
        for _ in range(10):  # the model may have said much while a person was asked
            number = next(self._numbers)
            message = {"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": "Are you there?"}]}
            request_id = tab.send(message)
            await asyncio.sleep(SETTLED_S)
            assert tab.is_over(request_id), f"frozen: {tab.client.frames.get(request_id)}"
            said = tab.chunks(request_id)
            if HERE in "".join(chunk.get("delta", "") for chunk in said):
                break
        else:
            raise AssertionError(f"the session is frozen: {tab.client.everything}")
        await tab.leave()

    async def end(self) -> None:
        for tab in self.tabs:
            if tab is not None:
                await tab.leave()
        await asyncio.gather(*self.work)
        await self.bridges[-1].aclose()
        await asyncio.sleep(1000)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        assert not [run for bridge in self.bridges for run in bridge._service._leases]  # pyright: ignore
        lease, _ = await self.store.acquire(CHAT, 1)
        assert lease is not None, "a lease is left"
