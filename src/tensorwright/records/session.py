"""The state of a tuning session in the store, from which the session can continue."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from tensorwright.base import RecordError, now_utc
from tensorwright.records.record import SCHEMA, is_encodable, record_error, to_json


@dataclass(frozen=True, slots=True)
class SavedSession:
    """One tuning session. `arguments` and `state` are JSON texts, opaque to the store.

    id         unique; saving a session replaces the one of the same id
    name       for people; not unique                model    name of the model
    arguments  how it was started                    state    its progress, for resuming
    started    UTC, as `now_utc` writes it           updated  UTC, in the same form

    Raises:  RecordError for an empty id or a text that is not JSON.
    """

    id: str
    name: str
    model: str
    arguments: str = "{}"
    state: str = "{}"
    started: str = ""
    updated: str = ""

    def __post_init__(self) -> None:
        moment = now_utc()
        for field in ("started", "updated"):
            if not getattr(self, field):
                object.__setattr__(self, field, moment)
        fault = _find_fault(self)
        if fault:
            raise record_error(f"session {self.id!r}", fault, "correct this field")


def session_id(arguments: str) -> str:
    """The id of the session that was started with some arguments."""
    return hashlib.sha256(arguments.encode()).hexdigest()[:16]


def _find_fault(session: SavedSession) -> str:
    for field, text in asdict(session).items():
        if not isinstance(text, str) or not is_encodable(text):
            return f"{field} must be text, not {text!r}"
    for field in ("arguments", "state"):
        try:
            json.loads(getattr(session, field))
        except ValueError as error:
            return f"{field} is not JSON: {error}"
    return "" if session.id else "id is empty"


def session_to_line(session: SavedSession) -> str:
    """The session as one JSON line, without its newline."""
    return to_json({"kind": "session", "schema": SCHEMA, **asdict(session)})


def session_from_fields(fields: dict[str, object], where: str) -> SavedSession:
    """Read a decoded line back.

    Raises:  RecordError whose `where` is the one given.
    """
    texts = {name: text for name, text in fields.items() if name not in ("kind", "schema")}
    if set(texts) != set(SavedSession.__slots__):
        reason = "a session has the fields " + ", ".join(SavedSession.__slots__)
        raise record_error(where, reason)
    try:
        return SavedSession(**{name: str(text) for name, text in texts.items()})
    except RecordError as error:
        raise record_error(where, error.reason) from None
