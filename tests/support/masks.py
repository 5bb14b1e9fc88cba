"""Masks for recordings: ids that are new in every recording get the same names."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]


@dataclass
class Masks:
    """A name for each id, of those that are new in every recording; the same id always gets the same name."""

    names: dict[str, str] = field(default_factory=dict)

    def give(self, kind: str, value: str) -> None:
        number = 1 + sum(name.startswith(f"{kind}-") for name in self.names.values())
        self.names.setdefault(value, f"{kind}-{number}")

    def find(self, line: Line) -> None:
        asked = line.get("body") or line.get("frame") or {}
        if "messages" in asked:
            self.give("chat", asked["id"])
            for message in asked["messages"]:
                self.give("msg", message["id"])
        if asked.get("requestId", "-") != "-":
            self.give("request", asked["requestId"])
        for value in _mappings(line):
            if "toolCallId" in value:
                self.give("call", value["toolCallId"])
            if "approvalId" in value:
                self.give("approval", value["approvalId"])
            if "messageId" in value:
                self.give("msg", value["messageId"])

    def apply(self, text: str) -> str:
        if not self.names:
            return text
        longest_first = sorted(self.names, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), lambda found: self.names[found[0]], text)


def masked(recording: str) -> str:
    """Ids also inside of longer words: a transaction's is made from the call's."""
    masks = Masks()
    lines: list[str] = []
    for text in recording.split("\n")[:-1]:
        line: Line = json.loads(text)
        masks.find(line)
        line["at"] = 0
        lines.append(masks.apply(json.dumps(line, ensure_ascii=False)) + "\n")
    return "".join(lines)


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _mappings(inner)
