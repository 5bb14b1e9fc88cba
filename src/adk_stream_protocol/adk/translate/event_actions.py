"""The actions of events, as data parts and files."""

from collections.abc import Collection, Mapping

from google.adk.events import Event

from ...protocol.chunks import AnyChunk, File
from ...protocol.stream import ChunkWriter
from ..event_parts import ArtifactFile


class EventActions:
    def __init__(self, writer: ChunkWriter, *, send_state: Collection[str], send_nodes: bool) -> None:
        self._writer = writer
        self._send_state = send_state
        self._send_nodes = send_nodes

    def encode(self, event: Event, artifacts: Mapping[str, ArtifactFile]) -> list[AnyChunk]:
        actions = event.actions
        out: list[AnyChunk] = []
        for filename, version in actions.artifact_delta.items():
            out += self._writer.data("artifact", {"filename": filename, "version": version})
            if filename in artifacts:
                out += self._writer.part(File(artifacts[filename].url, artifacts[filename].media_type))
        if self._send_state:
            shared = {key: value for key, value in actions.state_delta.items() if key in self._send_state}
            if shared:
                out += self._writer.data("state", shared)
        if actions.transfer_to_agent:
            out += self._writer.data("agent", {"agent": actions.transfer_to_agent})
        for widget in actions.render_ui_widgets or ():
            out += self._writer.data("widget", widget.model_dump(mode="json", by_alias=True), id=widget.id)
        if actions.set_model_response is not None:
            out += self._writer.data("output", actions.set_model_response)
        if self._send_nodes and (event.output is not None or actions.route is not None):
            node = {"path": event.node_info.path, "output": event.output, "route": actions.route}
            out += self._writer.data("node", {name: value for name, value in node.items() if value is not None})
        return out
