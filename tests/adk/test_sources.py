"""Grounding and citations of ADK's become sources with ids, and marks in the text."""

from typing import Any

from google.adk.events import Event
from google.genai import types

from adk_stream_protocol.adk.translate.sources import Sources
from adk_stream_protocol.protocol.chunks import SourceDocument, SourceUrl


def grounded(text: str, *chunks: types.GroundingChunk, supports: list[Any] | None = None) -> Event:
    metadata = types.GroundingMetadata(grounding_chunks=list(chunks), grounding_supports=supports)
    return Event(author="a", content=types.Content(parts=[types.Part(text=text)]), grounding_metadata=metadata)


def web(uri: str, title: str | None = None) -> types.GroundingChunk:
    return types.GroundingChunk(web=types.GroundingChunkWeb(uri=uri, title=title))


def support(start: int | None, end: int | None, text: str | None, *indices: int) -> types.GroundingSupport:
    segment = types.Segment(start_index=start, end_index=end, text=text)
    return types.GroundingSupport(segment=segment, grounding_chunk_indices=list(indices))


def test_an_event_without_grounding_has_no_sources() -> None:
    assert Sources().feed(Event(author="a")) == ([], [])


def test_pages_places_and_images_are_links() -> None:
    place = types.GroundingChunk(maps=types.GroundingChunkMaps(uri="https://maps.example", title="Café"))
    picture = types.GroundingChunk(image=types.GroundingChunkImage(source_uri="https://pics.example", title="Sky"))
    sources, _ = Sources().feed(grounded("x", web("https://a.example", "A"), place, picture))
    assert sources == [
        SourceUrl("source-1", "https://a.example", "A"),
        SourceUrl("source-2", "https://maps.example", "Café"),
        SourceUrl("source-3", "https://pics.example", "Sky"),
    ]


def test_a_retrieved_document_is_a_document_and_always_has_a_title() -> None:
    def retrieved(**fields: Any) -> types.GroundingChunk:
        return types.GroundingChunk(retrieved_context=types.GroundingChunkRetrievedContext(**fields))

    chunks = [retrieved(uri="gs://b/a.txt", title="A"), retrieved(uri="gs://b/b.txt"), retrieved()]
    sources, _ = Sources().feed(grounded("x", *chunks))
    assert sources == [
        SourceDocument("source-1", "text/plain", "A"),
        SourceDocument("source-2", "text/plain", "gs://b/b.txt"),
        SourceDocument("source-3", "text/plain", "document"),
    ]


def test_a_source_is_new_only_once() -> None:
    sources = Sources()
    assert len(sources.feed(grounded("x", web("https://a.example"), web("https://a.example")))[0]) == 1
    new, _ = sources.feed(grounded("x", web("https://a.example"), web("https://b.example")))
    assert new == [SourceUrl("source-2", "https://b.example")]


def test_citations_of_the_model_are_links_where_they_have_an_address() -> None:
    cited = types.CitationMetadata(citations=[types.Citation(uri="https://a.example", title="A"), types.Citation()])
    assert Sources().feed(Event(author="a", citation_metadata=cited)) == (
        [SourceUrl("source-1", "https://a.example", "A")],
        [],
    )


def test_a_citation_names_its_source_and_its_passage_in_the_units_of_javascript() -> None:
    # Gemini counts bytes: "é" has two, the emoji four. JavaScript counts one and two.
    event = grounded("é🌞 sun", web("https://a.example", "A"), supports=[support(7, 10, "sun", 0)])
    _, citations = Sources().feed(event)
    source = {"type": "source", "sourceType": "url", "id": "source-1", "url": "https://a.example", "title": "A"}
    assert citations == [{"source": source, "startIndex": 4, "endIndex": 7, "citedText": "sun"}]


def test_a_passage_without_a_start_begins_at_the_start() -> None:
    _, citations = Sources().feed(grounded("sun", web("https://a.example"), supports=[support(None, 3, None, 0)]))
    source = {"type": "source", "sourceType": "url", "id": "source-1", "url": "https://a.example"}
    assert citations == [{"source": source, "startIndex": 0, "endIndex": 3}]


def test_a_passage_that_rests_on_two_sources_has_two_citations() -> None:
    event = grounded("sun", web("https://a.example"), web("https://b.example"), supports=[support(0, 3, "sun", 0, 1)])
    _, citations = Sources().feed(event)
    assert [citation["source"]["id"] for citation in citations] == ["source-1", "source-2"]


def test_a_citation_of_a_document_has_the_document_s_fields() -> None:
    context = types.GroundingChunkRetrievedContext(uri="gs://b/a.txt", title="A")
    event = grounded("sun", types.GroundingChunk(retrieved_context=context), supports=[support(0, 3, None, 0)])
    _, citations = Sources().feed(event)
    assert citations[0]["source"] == {
        "type": "source",
        "sourceType": "document",
        "id": "source-1",
        "mediaType": "text/plain",
        "title": "A",
    }


def test_citations_that_point_nowhere_are_left_out() -> None:
    nowhere = [support(0, 3, "sun", 5), support(0, 3, "sun", 1), types.GroundingSupport(grounding_chunk_indices=[0])]
    event = grounded("sun", web("https://a.example"), types.GroundingChunk(), supports=nowhere)
    assert Sources().feed(event)[1] == []


def test_thoughts_do_not_count_for_the_place_of_a_passage() -> None:
    event = grounded("sun", web("https://a.example"), supports=[support(0, 3, "sun", 0)])
    assert event.content is not None
    event.content.parts = [types.Part(text="éé", thought=True), types.Part(text="sun")]
    _, citations = Sources().feed(event)
    assert (citations[0]["startIndex"], citations[0]["endIndex"]) == (0, 3)
