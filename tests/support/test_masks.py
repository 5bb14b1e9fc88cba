"""Recordings differ only where something else than an id differs."""

import json

from support.masks import masked


def test_masks_hide_which_ids_there_are_and_not_what_they_refer_to() -> None:
    def recording(*ids: str) -> str:
        chunks = [
            {"type": "start", "messageId": ids[0]},
            {"type": "tool-input-start", "toolCallId": ids[1]},
            {"type": "tool-input-start", "toolCallId": ids[2]},
            {"type": "tool-approval-request", "approvalId": ids[3], "toolCallId": ids[4]},
            {"type": "data-adk-approval", "id": ids[5]},
            {"type": "tool-output-available", "toolCallId": ids[1], "output": f"txn-{ids[6]}"},
        ]
        lines = [{"at": at, "exchange": 1, "direction": "chunk", "chunk": chunk} for at, chunk in enumerate(chunks)]
        return "".join(json.dumps(line) + "\n" for line in lines)

    right = masked(recording("id-m", "id-a", "id-b", "id-yes", "id-a", "id-yes", "id-a"))
    assert masked(recording("id-n", "id-c", "id-d", "id-no", "id-c", "id-no", "id-c")) == right
    assert "txn-call-1" in right
    for wrong in (
        recording("id-m", "id-a", "id-b", "id-yes", "id-b", "id-yes", "id-a"),
        recording("id-m", "id-a", "id-b", "id-yes", "id-a", "id-other", "id-a"),
        recording("id-m", "id-a", "id-b", "id-yes", "id-a", "id-yes", "id-b"),
        recording("id-m", "id-a", "id-a", "id-yes", "id-a", "id-yes", "id-a"),
    ):
        assert masked(wrong) != right
