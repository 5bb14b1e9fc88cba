"""How a live session is run and shown."""

from dataclasses import dataclass

from google.adk.agents.run_config import RunConfig

from ..session import MessageIds
from ..translate.translators import Translators
from .talking_on import LiveWhileWaiting


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """How a live session is run and shown."""

    run_config: RunConfig
    translators: Translators
    shown: MessageIds
    """How answers are shown that nobody asked for in writing, but for `LiveRun.spoken_style`."""
    while_waiting: LiveWhileWaiting | None = None
    """Whether the conversation goes on while somebody decides; None leaves it to the model."""
