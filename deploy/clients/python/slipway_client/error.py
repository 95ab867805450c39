"""The one kind of error that calls raise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from email.message import Message
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Validation:
    """A field that the server refused, and why."""

    field: str
    detail: str


class SlipwayError(Exception):
    """What the server answered when it did not do what it was asked, or that it could not be reached.

    ``status`` is the status of HTTP, 0 when no answer came. ``retry_after`` is the pause in seconds that the server asks for.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        detail: str = "",
        kind: str = "",
        validations: tuple[Validation, ...] = (),
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.detail = detail
        self.kind = kind
        self.validations = validations
        self.request_id = request_id
        self.retry_after = retry_after


def read_error(status: int, headers: Message, content: bytes) -> SlipwayError:
    """Reads the error out of an answer. What a proxy in between has answered becomes the ``detail``."""
    text = content.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("message"), str):
        body = {"message": f"The server answered {status}.", "detail": text[:200]}
    return SlipwayError(
        status,
        body["message"],
        detail=body.get("detail", ""),
        kind=body.get("kind", ""),
        validations=tuple(Validation(one["field"], one["detail"]) for one in body.get("validations") or ()),
        request_id=headers.get("X-Request-Id", ""),
        retry_after=_seconds(headers.get("Retry-After")),
    )


def _seconds(header: str | None) -> float | None:
    """``Retry-After`` is a number of seconds or a date."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(timezone.utc)).total_seconds())
    except (TypeError, ValueError):
        return None
