"""Measures a request while it arrives."""

from ..errors import RequestTooLarge
from ..limits import Limits, size


def too_large_file(limits: Limits) -> str:
    return f"A file is too large: {size(limits.max_file_bytes)} are allowed."


def too_much_json(limits: Limits) -> str:
    return f"The request is too large: {size(limits.max_json_bytes)} without its files are allowed."


class BodyMeter:
    """Counts a request while it arrives: the JSON, and separately the contents of `data:` URLs.

    Stock clients post their whole history with every file in it, so the two have limits of their own. A body that is
    over a limit is refused at once, before the rest of it has arrived.
    """

    _OPENING = b'"data:'

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._max_url_bytes = limits.max_file_bytes * 4 // 3 + 256  # base64, and the URL's head
        self._total = 0
        self._in_urls = 0
        self._url_bytes: int | None = None  # of the URL that we are in
        self._tail = b""  # an opening may be cut by a chunk's end

    def feed(self, data: bytes) -> None:
        self._total += len(data)
        position = 0
        window = self._tail + data
        while position < len(window):
            if self._url_bytes is None:
                opening = window.find(self._OPENING, position)
                if opening < 0:
                    break
                position = opening + len(self._OPENING)
                self._url_bytes = 0
            else:
                closing = window.find(b'"', position)
                end = len(window) if closing < 0 else closing
                self._url_bytes += end - position
                self._in_urls += end - position
                if self._url_bytes > self._max_url_bytes:
                    raise RequestTooLarge(too_large_file(self._limits))
                position = end
                if closing >= 0:
                    self._url_bytes = None
                    position += 1
        self._tail = b"" if self._url_bytes is not None else window[max(position, len(window) - 5) :]
        if self._total > self._limits.max_body_bytes:
            raise RequestTooLarge(
                f"The request is too large: {size(self._limits.max_body_bytes)} with its files are allowed. "
                "Send only the last message instead of all."
            )
        if self._total - self._in_urls > self._limits.max_json_bytes:
            raise RequestTooLarge(too_much_json(self._limits))
