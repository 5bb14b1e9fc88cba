"""The errors: the tree in the module's docstring is the tree of its classes, and a code names one class."""

import re

from adk_stream_protocol import errors
from adk_stream_protocol.errors import BridgeError, ConfigurationError, RefusedByApplication


def all_below(parent: type[BridgeError]) -> list[type[BridgeError]]:
    return [found for child in parent.__subclasses__() for found in (child, *all_below(child))]


def test_the_docstring_draws_the_tree() -> None:
    drawn = re.findall(r"^ {4}[│├└─ ]*([A-Z]\w+)(?: +(\d{3}))?", errors.__doc__ or "", re.MULTILINE)
    classes = {found.__name__: found for found in [BridgeError, *all_below(BridgeError), ConfigurationError]}
    assert [name for name, _ in drawn] == list(classes)
    for name, status in drawn:
        if status:
            assert int(status) == classes[name].status, name


def test_each_refusal_has_a_code_and_a_text_of_its_own() -> None:
    leaves = [found for found in all_below(BridgeError) if not found.__subclasses__() and "code" in vars(found)]
    assert len({found.code for found in leaves}) == len({found.public_text for found in leaves}) == len(leaves)


def test_an_application_refuses_with_its_own_status_and_text() -> None:
    refused = RefusedByApplication(402, "Pay first.")
    assert (refused.status, str(refused)) == (402, "Pay first.")
    odd = RefusedByApplication(200, {"secret": 1})
    assert (odd.status, str(odd)) == (500, RefusedByApplication.public_text)
