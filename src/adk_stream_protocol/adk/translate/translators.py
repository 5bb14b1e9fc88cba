"""How answers are translated for their clients, where a request does not say otherwise."""

from dataclasses import dataclass

from ...protocol.chunks import SdkVersion
from ...protocol.messages import ApprovalStyle
from ..session import Chat, MessageIds
from .translator import Translator


@dataclass(frozen=True, kw_only=True)
class Translators:
    sdk_version: SdkVersion
    approval_style: ApprovalStyle | None

    def new(self, chat: Chat, ids: MessageIds, sdk_version: SdkVersion | None = None) -> Translator:
        """For one message. `ids` say how it is shown; `sdk_version`: that of the client that asks."""
        return Translator(
            root_author=chat.root_author,
            sdk_version=sdk_version or self.sdk_version,
            approval_style=ids.approval_style or self.approval_style,
            send_state=ids.send_state or (),
            send_nodes=ids.send_nodes or False,
            control_flow=chat.control_flow,
            browser_tools=chat.browser_tools,
        )
