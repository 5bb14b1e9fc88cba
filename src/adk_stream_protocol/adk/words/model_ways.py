"""Which way the words of a model go: past ADK, merged, or one by one through ADK."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from google.adk.models.base_llm import BaseLlm


@dataclass(frozen=True)
class ModelWays:
    """For one run: models by the names of their agents. The words of all others go one by one."""

    direct: Mapping[str, BaseLlm] = field(default_factory=dict[str, BaseLlm])
    """Past ADK, since nobody watches them there: see `direct_text.py`."""
    merged: Mapping[str, BaseLlm] = field(default_factory=dict[str, BaseLlm])
    """Several as one, if they do not go past ADK: see `merged_text.py`."""
