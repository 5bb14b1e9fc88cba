"""The chats of one application, as far as ADK's runner has them."""

from collections.abc import Callable
from urllib.parse import quote

from google.adk.runners import Runner
from google.adk.sessions import Session

from ..errors import NotFound
from ..protocol.call_record import ChatKey
from ..protocol.turn import is_chat_id
from .calls.client_tools import browser_tools_of
from .control_flow import control_flow_by_author
from .session import Chat, reaching
from .words.model_ways import ModelWays


class Chats:
    def __init__(self, runner: Runner, model_ways: Callable[[], ModelWays] = ModelWays) -> None:
        self.runner = runner
        self._model_ways = model_ways
        self._control_flow = control_flow_by_author(runner.agent)
        self._browser_tools = frozenset(browser_tools_of(runner.agent))

    def __contains__(self, chat: ChatKey) -> bool:
        """Several applications may share a store."""
        return chat.app_name == self.runner.app_name

    def key(self, user_id: str, chat_id: str) -> ChatKey:
        return ChatKey(self.runner.app_name, user_id, chat_id)

    def open(self, user_id: str, chat_id: str, files_root: str = "") -> Chat:
        """`files_root`: the path of the chats, below which the client finds their files."""
        if not is_chat_id(chat_id):
            raise NotFound
        files_url = f"{files_root}/{quote(chat_id, safe='')}/files"
        return Chat(self.runner, user_id, chat_id, files_url, self._control_flow, self._browser_tools, self._model_ways)

    async def newest(self, user_id: str) -> list[Session]:
        """The sessions of a user's chats, without their events."""
        service = self.runner.session_service
        with reaching(service):
            listed = await service.list_sessions(app_name=self.runner.app_name, user_id=user_id)
        newest = sorted(listed.sessions, key=lambda session: session.last_update_time, reverse=True)
        return [session for session in newest if is_chat_id(session.id)]
