"""How a live session is run and shown."""

from dataclasses import dataclass

from google.adk.agents.run_config import RunConfig

from ..session import MessageIds
from ..translate.translators import Translators


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """How a live session is run and shown."""

    run_config: RunConfig
    translators: Translators
    shown: MessageIds
    """How answers are shown that nobody asked for in writing, but for `LiveRun.spoken_style`."""
