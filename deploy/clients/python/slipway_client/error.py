"""The error that calls raise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from email.message import Message
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Validation:
    """A field that the server rejected, and why."""

    field: str
    detail: str


class SlipwayError(Exception):
    """An error response of the server, or a failed connection.

    ``status`` is the HTTP status, 0 if there was no response. ``retry_after`` is the delay in seconds that the server requests.
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
    """Parses an error response. The response of a proxy becomes the ``detail``."""
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
