"""The key by which a payment service recognizes a repeated attempt at one call."""

import hashlib

from google.adk.tools import ToolContext

from ...protocol.digest import canonical_json, digest_of_call
from .leased_chat import call_keys


def idempotency_key(tool_context: ToolContext) -> str:
    """The same key for every attempt at this call, and another one for every other call.

    Give it to services that accept an idempotency key."""
    chat, call = call_keys(tool_context)
    for event in reversed(tool_context.session.events):
        for found in event.get_function_calls():
            if found.id == call.call_id and event.invocation_id == call.invocation_id:
                digest = digest_of_call(found.name or "", found.args or {})
                return hashlib.sha256(canonical_json([*chat, *call, digest])).hexdigest()
    raise ValueError("There is no such call in the session.")
