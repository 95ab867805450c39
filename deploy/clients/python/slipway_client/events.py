"""Reads server-sent events from a response."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPException
from typing import Protocol


class Lines(Protocol):
    """What a stream is read from."""

    def readline(self) -> bytes: ...


class ConnectionLost(Exception):
    """A stream's connection ended without the last event."""


def read_events(response: Lines) -> Iterator[tuple[str, str]]:
    """Yields the name and the data of each event. Raises ConnectionLost when the connection breaks, ends, or is idle for too long."""
    event, data = "message", []
    while True:
        try:
            line = response.readline()
        except (OSError, HTTPException, ValueError) as error:
            raise ConnectionLost("The stream broke off.") from error
        if not line.endswith(b"\n"):
            raise ConnectionLost("The stream ended.")
        field, _, value = line.decode("utf-8").rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            event = value
        elif field == "data":
            data.append(value)
        elif field == "":
            yield event, "\n".join(data)
            event, data = "message", []
