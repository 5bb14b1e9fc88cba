"""Routes of a live session, told in few words what the user and the model do."""

from typing import Any

from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_messages import Message, Phase, Unwanted
from adk_stream_protocol.protocol.live_routes import Place, Routes

PAY, LOOK, STRANGE = (CallKey("inv", name) for name in ("pay", "look", "strange"))


class Talk(Routes):
    def write(self, name: str) -> Message:
        message = self.begin(Phase.ASKED, name)
        self.ask(message)
        return message

    def comes(self, **about: Any) -> Place:
        return self.route(ModelEvent("event", **about))

    def says(self, **about: Any) -> Message:
        message = self.comes(is_said=True, **about).message
        assert message is not None
        return message

    def hears(self, *, is_all: bool = False) -> Message:
        message = self.comes(heard=is_all).message
        assert message is not None
        return message

    def gets(self, *keys: CallKey) -> Message | None:
        """The model gets these results."""
        return self.comes(is_said=True, results=keys).message

    def completes(self, **about: Any) -> Place:
        return self.comes(is_turn_complete=True, **about)

    def answers(self, name: str, *calls: CallKey) -> Message:
        """The user has written, and this is the whole answer."""
        message = self.write(name)
        self.says(calls=calls, is_turn_complete=True)
        return message


def interrupted_in_a_sentence() -> tuple[Talk, Message, Message]:
    """And the user has written something else since, which is next."""
    at = Talk()
    first = at.write("A")
    at.says(calls=(PAY,))
    first.unwanted = Unwanted.INTERRUPTED
    return at, first, at.write("B")
