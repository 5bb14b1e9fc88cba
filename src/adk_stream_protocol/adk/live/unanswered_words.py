"""The user's words that the model has not answered, and which of them a resumed conversation lacks.

A resumption handle stands for the conversation up to the moment at which the service issued it. What was sent later is
lost with the connection. There is no clock and no connection here: the caller reports what was sent and received.
"""

from dataclasses import dataclass
from math import inf

from google.genai import types


@dataclass(eq=False)
class _Words:
    content: types.Content
    handles_before: float
    """How many of the known handles were issued before they were sent."""
    is_being_answered: bool = False


class UnansweredWords:
    def __init__(self) -> None:
        self._words: list[_Words] = []
        self._handles: list[str] = []
        self._is_turn_open = False
        self._has_new_result = False

    @property
    def is_answer_due(self) -> bool:
        """Whether the model has something to answer, or has not come to the end of what it says."""
        return self._is_turn_open or self._has_new_result or bool(self._words)

    def sent(self, content: types.Content) -> None:
        self._words.append(_Words(content, len(self._handles)))

    def result_sent(self) -> None:
        """Of a tool. It is not sent again from here: the queue keeps what nobody has taken."""
        self._has_new_result = True

    def not_sent(self, content: types.Content) -> None:
        """Sending has failed: no handle stands for these words."""
        for words in self._words:
            if words.content is content:
                words.handles_before = inf

    def handle_issued(self, handle: str) -> None:
        self._handles.append(handle)

    def handle_in_use(self, handle: str) -> None:
        """If the connection is lost from now on, it is resumed with this handle or a later one."""
        place = max(self._place_of(handle), 0)
        del self._handles[:place]
        for words in self._words:
            words.handles_before -= place

    def said(self) -> None:
        self._has_new_result = False
        if not self._is_turn_open:  # words that come from now on are not what is being answered
            self._is_turn_open = True
            for words in self._words:
                words.is_being_answered = True

    def called(self) -> None:
        """The model has called a tool. If the words were sent again, it would call the tool again."""
        self.said()
        self.turn_completed()

    def turn_completed(self) -> None:
        """A turn in which nothing was said is an answer, too."""
        has_said_something, self._is_turn_open, self._has_new_result = self._is_turn_open, False, False
        self._words = [words for words in self._words if has_said_something and not words.is_being_answered]

    def take_lost(self, handle: str | None) -> list[types.Content]:
        """The connection was lost, and the conversation is resumed with this handle, or begins again without one. Gives
        what is to be sent again: the service has the rest."""
        place = self._place_of(handle)
        lost = [words.content for words in self._words if words.handles_before > place]
        kept = [words.content for words in self._words if words.handles_before <= place]
        self.forget()
        self._words = [_Words(content, handles_before=0) for content in kept]
        if handle is not None:
            self._handles = [handle]
        return lost

    def forget(self) -> None:
        self._words, self._handles, self._is_turn_open, self._has_new_result = [], [], False, False

    def _place_of(self, handle: str | None) -> int:
        """-1 if it was issued before everything that is known here."""
        found = [place for place, known in enumerate(self._handles) if known == handle]
        return found[-1] if found else -1
