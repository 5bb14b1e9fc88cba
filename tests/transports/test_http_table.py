"""What docs/reference/http.md says of every answer is what an application answers."""

import asyncio

from transports.http_table import tables, written


def test_the_tables_of_the_reference_are_what_an_application_answers() -> None:
    assert written().splitlines() == asyncio.run(tables()).splitlines(), "python tests/transports/http_table.py"
