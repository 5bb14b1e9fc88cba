"""Whoever meets an error code finds it in docs/howto/troubleshooting.md."""

import re

from adk_stream_protocol import errors
from adk_stream_protocol.errors import BridgeError
from support.documents import ROOT

PAGE = (ROOT / "docs" / "howto" / "troubleshooting.md").read_text()
ROW = re.compile(r"^\| `([\w-]+)` \| (\d{3}|as raised) \|", re.MULTILINE)


def test_each_code_has_one_row_with_its_status() -> None:
    classes = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, BridgeError)]
    codes = {found.code: "as raised" if found.code == "refused" else str(found.status) for found in classes}
    rows = ROW.findall(PAGE)
    assert dict(rows) == codes
    assert len(rows) == len(codes)
