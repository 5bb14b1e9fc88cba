"""Parts that ADK never splits over events: files, and the code and tools that run at the model's service."""

from typing import Any

from google.genai import types

from ...protocol.chunks import AnyChunk, File
from ...protocol.stream import ChunkWriter
from ..event_parts import data_file
from .sources import Sources
from .speakers import Speaker
from .wire_ids import WireIds


class WholeParts:
    def __init__(self, writer: ChunkWriter, wire_ids: WireIds, sources: Sources) -> None:
        self._writer = writer
        self._wire_ids = wire_ids
        self._sources = sources
        self._server_calls = 0

    def encode(self, speaker: Speaker, part: types.Part) -> list[AnyChunk]:
        return [*self._writer.end_text(speaker), *self._encode(speaker, part)]

    def _encode(self, speaker: Speaker, part: types.Part) -> list[AnyChunk]:
        if part.inline_data is not None:
            file = data_file(part.inline_data.data, part.inline_data.mime_type)
            if part.thought:
                return self._writer.reasoning_file(file.url, file.media_type)
            return self._writer.part(file)
        if part.file_data is not None:
            return self._linked_file(part.file_data.file_uri, part.file_data.mime_type)
        if part.executable_code is not None:
            code = part.executable_code
            language = code.language.value if code.language else "LANGUAGE_UNSPECIFIED"
            return self._server_call(speaker, code.id, "code_execution", {"language": language, "code": code.code})
        if part.code_execution_result is not None:
            result = part.code_execution_result
            outcome = result.outcome.value if result.outcome else "OUTCOME_UNSPECIFIED"
            return self._server_result(speaker, result.id, {"outcome": outcome, "output": result.output or ""})
        if part.tool_call is not None:
            name = part.tool_call.tool_type.value.lower() if part.tool_call.tool_type else "server_tool"
            return self._server_call(speaker, part.tool_call.id, name, part.tool_call.args or {})
        response = part.tool_response
        return self._server_result(speaker, response.id, response.response or {}) if response is not None else []

    def encode_result_file(self, file: types.FunctionResponsePart) -> list[AnyChunk]:
        """A file that a tool returned beside its response."""
        if file.inline_data is not None:
            return self._writer.part(data_file(file.inline_data.data, file.inline_data.mime_type))
        if file.file_data is not None:
            return self._linked_file(file.file_data.file_uri, file.file_data.mime_type)
        return []

    def _linked_file(self, uri: str | None, media_type: str | None) -> list[AnyChunk]:
        media_type = media_type or "application/octet-stream"
        if uri and uri.startswith(("https://", "http://")):
            return self._writer.part(File(uri, media_type))
        name = (uri or "file").rstrip("/").rpartition("/")[2]
        return self._writer.part(self._sources.document(uri or name, name, media_type))

    def _server_call(self, speaker: Speaker, given_id: str | None, name: str, arguments: Any) -> list[AnyChunk]:
        """Code and tools that run at the model's service. Ids are mostly missing; then results come in order."""
        self._server_calls += 1
        wire_id = self._wire_ids.new(speaker, given_id or f"{name}-{self._server_calls}")
        speaker.open_server_calls.append(wire_id)
        out = self._writer.tool_input_start(wire_id, name, provider_executed=True, dynamic=True)
        return [*out, *self._writer.tools.input_available(wire_id, arguments)]

    def _server_result(self, speaker: Speaker, given_id: str | None, output: Any) -> list[AnyChunk]:
        wire_id = speaker.wire_ids.get(given_id or "")
        if wire_id not in speaker.open_server_calls:
            wire_id = speaker.open_server_calls[0] if speaker.open_server_calls else None
        if wire_id is None:
            return []
        speaker.open_server_calls.remove(wire_id)
        return self._writer.tools.output(wire_id, output)
