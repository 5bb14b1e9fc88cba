"""How a live session is run and shown."""

from dataclasses import dataclass

from google.adk.agents.run_config import RunConfig

from ...protocol.chunks import SdkVersion
from ..session import MessageIds
from ..translate.translators import Translators


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """How a live session is run and shown."""

    run_config: RunConfig
    translators: Translators


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How answers are shown that nobody asked for in writing: as the client wants that wrote last, or listens."""

    ids: MessageIds
    sdk_version: SdkVersion | None = None
