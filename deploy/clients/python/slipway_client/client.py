"""The client: a method for each operation of the API, and streams that resume where they were after a lost connection."""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from .error import SlipwayError, read_error
from .events import ConnectionLost, read_events
from .operations import Operation, Operations
from .schema import ChatEvent, ProvisionerJobLog

# The server was busy or restarting, or a proxy could not reach it; 0 is a lost connection.
_RETRYABLE_STATUSES = {0, 429, 502, 503, 504}
_BASE_DELAY = 0.25
_MAX_DELAY = 15.0
# The server sends something at least every 15 s. After this long without a byte, a stream's connection is considered lost.
_IDLE_TIMEOUT = 45.0
# A connection that lasted this long was stable: the count of failures starts again.
_STABLE_SECONDS = 5.0


class _NoRedirects(HTTPRedirectHandler):
    """Rejects redirects to other hosts, which would receive the token."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        return None


class Slipway(Operations):
    """A client for one server, with one token. Each operation of the API is a method, such as ``create_workspace``; all raise SlipwayError.

    ``token`` is an API token; without it, only public operations work. ``headers`` are sent with every request. A failed request is retried up to
    ``retries`` times if that is safe, after a pause of at most ``max_pause`` seconds; one try may take ``timeout`` seconds between two
    pieces of the answer. A stream tries for ``reconnect`` seconds to connect again before it fails.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        retries: int = 4,
        max_pause: float = 60.0,
        timeout: float = 60.0,
        reconnect: float = 300.0,
        opener: OpenerDirector | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._headers = dict(headers or {})
        self._retries = retries
        self._max_pause = max_pause
        self._timeout = timeout
        self._reconnect = reconnect
        self._opener = opener or build_opener(_NoRedirects)

    def follow_chat(self, chat: str, *, after_id: int = 0) -> Iterator[ChatEvent]:
        """Yields the events of a chat: first the messages after ``after_id`` and the current state, then every change.

        After a lost connection, it resumes after the last message. If that message was removed in the meantime, it yields ``history_reset``
        and then all messages. The parts of an unfinished answer are repeated after ``preview_reset``.
        """
        last = after_id
        due: list[ChatEvent] = []

        def is_current() -> bool:
            # Checked once the stream is open: the stream reports later removals itself.
            nonlocal last
            due[:] = [*(one for one in due if one["type"] == "history_reset"), {"type": "preview_reset", "chat_id": chat}]
            if last == 0:
                return True
            newest = self.list_messages(chat, before_id=last + 1, limit=1)["messages"]
            if newest and newest[0]["id"] == last:
                return True
            last = 0
            due[:] = [{"type": "history_reset", "chat_id": chat}, {"type": "preview_reset", "chat_id": chat}]
            return False

        def query() -> dict[str, Any]:
            return {"after_id": last}

        for events in self._events(Operation("GET", "/api/v2/chats/{chat}/stream"), {"chat": chat}, query, is_current):
            yield from due
            due.clear()
            for event in events:
                if event["type"] == "message":
                    last = max(last, event["message"]["id"])
                elif event["type"] == "history_reset":
                    last = 0
                yield event

    def follow_build_log(self, build: str, *, after: int = 0) -> Iterator[ProvisionerJobLog]:
        """Yields the lines of a build's log after ``after``, including new ones, each once; returns when the build has ended."""
        operation = Operation("GET", "/api/v2/workspacebuilds/{workspacebuild}/logs")
        return self._follow_log(operation, {"workspacebuild": build}, after)

    def follow_template_version_log(self, version: str, *, after: int = 0) -> Iterator[ProvisionerJobLog]:
        """Yields the lines of an import's log, like ``follow_build_log``."""
        operation = Operation("GET", "/api/v2/templateversions/{templateversion}/logs")
        return self._follow_log(operation, {"templateversion": version}, after)

    def _follow_log(self, operation: Operation, path: Mapping[str, str], after: int) -> Iterator[ProvisionerJobLog]:
        last = after

        def query() -> dict[str, Any]:
            return {"follow": True, "after": last}

        for line in self._events(operation, path, query):
            last = line["id"]
            yield line

    def _stream(self, operation: Operation, path: Mapping[str, Any], query: Mapping[str, Any]) -> Iterator[Any]:
        return self._events(operation, path, lambda: query)

    def _events(
        self,
        operation: Operation,
        path: Mapping[str, Any],
        query: Callable[[], Mapping[str, Any]],
        is_current: Callable[[], bool] = lambda: True,
    ) -> Iterator[Any]:
        """Yields the content of each ``data`` event, reconnecting as needed, until the server sends ``end``.

        ``is_current`` is called when a later connection is open; if it returns false, the client connects again with a new ``query``.
        """
        failures = 0
        lost_at: float | None = None
        is_first = True
        while True:
            opened_at = time.monotonic()
            asked: float | None = None
            try:
                retries = self._retries if is_first else 0
                accept = {"Accept": "text/event-stream"}
                with self._send(operation, path, query(), None, accept, retries, _IDLE_TIMEOUT) as response:
                    if not is_first and not is_current():
                        continue
                    for event, data in read_events(response):
                        lost_at = None
                        if event == "end":
                            return
                        if event == "data":
                            yield json.loads(data)
            except SlipwayError as error:
                if is_first or not _can_retry(error, True):
                    raise
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > self._reconnect:
                    raise
                asked = error.retry_after
            except ConnectionLost as error:
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > self._reconnect:
                    raise self._unreachable(error) from error
            is_first = False
            if time.monotonic() - opened_at > _STABLE_SECONDS:
                failures = 0
            time.sleep(min(_get_retry_delay(failures, asked), self._max_pause))
            failures += 1

    def _call(
        self,
        operation: Operation,
        path: Mapping[str, Any],
        query: Mapping[str, Any],
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Any:
        """Calls an operation and returns its response: JSON, text, or bytes."""
        with self._send(operation, path, query, body, headers or {}, self._retries, self._timeout) as response:
            kind = response.headers.get_content_type() if "Content-Type" in response.headers else ""
            content = response.content
        if content == b"" and kind in ("", "application/json"):
            return None
        if re.fullmatch(r"application/(\w+\+)?json", kind):
            return json.loads(content)
        return content.decode("utf-8") if kind.startswith("text/") else content

    def _send(
        self,
        operation: Operation,
        path: Mapping[str, Any],
        query: Mapping[str, Any],
        body: Any,
        headers: Mapping[str, str | None],
        retries: int,
        timeout: float,
    ) -> _Answer:
        """Sends a request, with retries, until it succeeds. Raises SlipwayError."""
        request = self._request(operation, path, query, body, headers)
        is_repeatable = operation.has_key or operation.method not in ("POST", "PATCH")
        is_stream = request.get_header("Accept") == "text/event-stream"
        attempt = 0
        while True:
            try:
                return _Answer(self._opener.open(request, timeout=timeout), is_stream)
            except HTTPError as error:
                with error:
                    failure = read_error(error.code, error.headers, _read_quietly(error))
            except (URLError, HTTPException, OSError) as error:
                failure = self._unreachable(error)
            seconds = _get_retry_delay(attempt, failure.retry_after)
            if attempt >= retries or seconds > self._max_pause or not _can_retry(failure, is_repeatable):
                raise failure
            time.sleep(seconds)
            attempt += 1

    def _request(
        self,
        operation: Operation,
        path: Mapping[str, Any],
        query: Mapping[str, Any],
        body: Any,
        headers: Mapping[str, str | None],
    ) -> Request:
        request = Request(self.url + _fill_path(operation.path, path) + _query(query), method=operation.method)
        for name, value in self._headers.items():
            request.add_header(name, value)
        if self._token is not None:
            request.add_header("Service-Session-Token", self._token)
        for name, given in headers.items():
            if given is not None:
                request.add_header(name, given)
        if operation.has_key and not request.has_header("Idempotency-key"):
            request.add_header("Idempotency-Key", str(uuid.uuid4()))
        if body is not None:
            is_raw = isinstance(body, (bytes, bytearray)) or operation.body != "application/json"
            request.data = body if is_raw else json.dumps(body).encode()
            if not request.has_header("Content-type"):
                request.add_header("Content-Type", operation.body)
        return request

    def _unreachable(self, error: Exception) -> SlipwayError:
        place = urlsplit(self.url)
        return SlipwayError(0, f"No answer from {place.scheme}://{place.netloc}.", detail=str(error))


class _Answer:
    """A response that ``with`` closes. Unless it is a stream, it is read completely as part of the attempt."""

    def __init__(self, response: HTTPResponse, is_stream: bool) -> None:
        self.headers = response.headers
        self._response = response
        self.content = b""
        if not is_stream:
            with response:
                self.content = response.read()

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def readline(self) -> bytes:
        return self._response.readline()


def _can_retry(error: SlipwayError, is_repeatable: bool) -> bool:
    """Returns whether a request can be retried.

    A request that changes something may have been processed before its response was lost; it is sent again only if the server recognizes duplicates, or if
    429 says that nothing was done.
    """
    return error.status in _RETRYABLE_STATUSES and (is_repeatable or error.status == 429)


def _get_retry_delay(attempt: int, asked: float | None) -> float:
    """Returns the delay before a retry, unless the server specifies one: it doubles, and half of it is random."""
    if asked is not None:
        return asked
    longest = min(_MAX_DELAY, _BASE_DELAY * 2.0 ** min(attempt, 16))
    return random.uniform(longest / 2, longest)


def _fill_path(path: str, values: Mapping[str, Any]) -> str:
    def get_value(match: re.Match[str]) -> str:
        value = str(values.get(match[1]) or "")
        if value == "":
            raise ValueError(f'"{match[1]}" is missing in the path {path}')
        return quote(value, safe="")

    return re.sub(r"\{(\w+)\}", get_value, path)


def _query(query: Mapping[str, Any]) -> str:
    pairs = [
        (name, ("false", "true")[one] if isinstance(one, bool) else str(one))
        for name, value in query.items()
        for one in (value if isinstance(value, (list, tuple)) else [value])
        if one is not None
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def _read_quietly(error: HTTPError) -> bytes:
    try:
        return error.read()
    except (OSError, HTTPException):
        return b""
