"""The chain of people who decide about one call, one link after the other.

Pure: who is named by a link, whose turn it is, and what an approval makes of the chain. The moves themselves are in
call_record.py, as for every call. An approval belongs to what its approver was shown. When somebody changes that, the
approvals of everybody else lapse, and their links are asked again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

GROUP = "group:"
"""Before the name of a group among approvers. A user's id that begins so names nobody."""

BY_POLICY = "by policy"
"""In the place of a user's id, for what the application's policy has decided by itself."""


class ChainLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision, by one of those whom it names."""

    approvers: tuple[str, ...]
    """User ids, and groups as `group:name`."""
    deadline_s: float | None = None
    """How long they have, from when it is their turn."""
    approved: bool | None = None
    decided_by: str | None = None
    decided_at: float | None = None
    reason: str | None = None
    digest: str | None = None
    """Of what was shown to whoever decided."""


Chain = tuple[ChainLink, ...]

Seat = Literal["none", "past", "now"]
"""Whether a user may decide. `none`: no link that was asked names the user. `past`: the user, or a link that names the
user, has decided. `now`: it is the user's turn."""


def names(approvers: Collection[str], user: str, groups: Collection[str] = ()) -> bool:
    """Whether these approvers name the user, by id or by a group."""
    is_named = user in approvers and not user.startswith(GROUP)
    return is_named or any(GROUP + group in approvers for group in groups)


def turn_of(chain: Sequence[ChainLink]) -> int:
    """The link that decides next, or that has ended the chain. The length of the chain, if all have approved."""
    return next((place for place, link in enumerate(chain) if link.approved is not True), len(chain))


def has_decided(chain: Sequence[ChainLink], user: str) -> bool:
    return any(link.decided_by == user for link in chain)


def seat_of(chain: Sequence[ChainLink], user: str, groups: Collection[str] = ()) -> Seat:
    turn = turn_of(chain)
    asked = [link for place, link in enumerate(chain) if place <= turn or link.approved is not None]
    if not any(names(link.approvers, user, groups) for link in asked):
        return "none"
    is_open = turn < len(chain) and chain[turn].approved is None
    if not is_open or has_decided(chain, user) or not names(chain[turn].approvers, user, groups):
        return "past"
    return "now"


def with_decision(chain: Sequence[ChainLink], decision: Mapping[str, Any]) -> Chain:
    """The chain after a decision of the link whose turn it is: its fields, with the digest of what was shown. Approvals
    of something else lapse."""
    turn = turn_of(chain)

    def after(place: int, link: ChainLink) -> ChainLink:
        if place == turn:
            return msgspec.structs.replace(link, **decision)
        if link.digest == decision["digest"]:
            return link
        return ChainLink(approvers=link.approvers, deadline_s=link.deadline_s)

    return tuple(after(place, link) for place, link in enumerate(chain))
