"""Grounding and citations: the sources of an answer, and which passages of its text rest on them."""

from collections.abc import Iterator
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.chunks import SourceDocument, SourceUrl

Source = SourceUrl | SourceDocument


class Sources:
    """The sources of one message, each emitted once."""

    def __init__(self) -> None:
        self._by_address: dict[str, Source] = {}
        self._suggestions: set[str] = set()

    def feed(self, event: Event) -> tuple[list[Source], list[dict[str, Any]]]:
        """The sources that are new with this event, and the citations of its text."""
        if event.grounding_metadata is None and event.citation_metadata is None:
            return [], []
        known = len(self._by_address)
        cited = [
            self._source(chunk)
            for chunk in (event.grounding_metadata and event.grounding_metadata.grounding_chunks) or ()
        ]
        for citation in (event.citation_metadata and event.citation_metadata.citations) or ():
            if citation.uri:
                self._add(citation.uri, citation.title)
        new = list(self._by_address.values())[known:]
        return new, list(_citations(event, cited))

    def new_suggestions(self, event: Event) -> Iterator[tuple[str, str]]:
        """The id and the HTML of Google's search suggestions. Its terms ask to show them as they are."""
        entry_point = event.grounding_metadata and event.grounding_metadata.search_entry_point
        html = entry_point and entry_point.rendered_content
        if html and html not in self._suggestions:
            self._suggestions.add(html)
            yield f"search-suggestions-{len(self._suggestions)}", html

    def _source(self, chunk: types.GroundingChunk) -> Source | None:
        for page in (chunk.web, chunk.maps):
            if page is not None and page.uri:
                return self._add(page.uri, page.title)
        if chunk.image is not None and chunk.image.source_uri:
            return self._add(chunk.image.source_uri, chunk.image.title)
        document = chunk.retrieved_context
        if document is None:
            return None
        title = document.title or document.uri or "document"
        return self.document(document.uri or title, title, "text/plain")

    def document(self, address: str, title: str, media_type: str) -> Source:
        if address not in self._by_address:
            self._by_address[address] = SourceDocument(self._next_id(), media_type, title)
        return self._by_address[address]

    def _add(self, url: str, title: str | None) -> Source:
        if url not in self._by_address:
            self._by_address[url] = SourceUrl(self._next_id(), url, title)
        return self._by_address[url]

    def _next_id(self) -> str:
        return f"source-{len(self._by_address) + 1}"


def _citations(event: Event, cited: list[Source | None]) -> Iterator[dict[str, Any]]:
    """Which passage rests on which source, in the shape of the AI SDK 7."""
    supports = (event.grounding_metadata and event.grounding_metadata.grounding_supports) or ()
    text = "".join(part.text or "" for part in (event.content and event.content.parts) or () if not part.thought)
    for support in supports:
        segment = support.segment
        if segment is None:
            continue
        for index in support.grounding_chunk_indices or ():
            source = cited[index] if 0 <= index < len(cited) else None
            if source is None:
                continue
            citation: dict[str, Any] = {"source": _as_citation_source(source)}
            if segment.end_index is not None:
                citation["startIndex"] = _utf16_index(text, segment.start_index or 0)
                citation["endIndex"] = _utf16_index(text, segment.end_index)
            if segment.text:
                citation["citedText"] = segment.text
            yield citation


def _as_citation_source(source: Source) -> dict[str, Any]:
    if isinstance(source, SourceDocument):
        return {
            "type": "source",
            "sourceType": "document",
            "id": source.source_id,
            "mediaType": source.media_type,
            "title": source.title,
        }
    titled = {"title": source.title} if source.title else {}
    return {"type": "source", "sourceType": "url", "id": source.source_id, "url": source.url, **titled}


def _utf16_index(text: str, byte_index: int) -> int:
    """Gemini counts bytes of UTF-8, JavaScript units of UTF-16."""
    before = text.encode("utf-8", "replace")[:byte_index].decode("utf-8", "ignore")
    return len(before.encode("utf-16-le")) // 2
