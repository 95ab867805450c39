// Raw HTTP requests, for headers and bodies that no well-behaved client sends.
import { RawConnection } from "#test/support/net/raw.ts";

export type Answer = { status: number; headers: Headers; text: string };

/** Returns the head of a request, to be followed by a body. */
export const formatHead = (method: string, path: string, headers: Record<string, string | number> = {}): string =>
  [
    `${method} ${path} HTTP/1.1`,
    ...Object.entries({ Host: "localhost", ...headers }).map(([name, value]) => `${name}: ${value}`),
    "\r\n",
  ].join("\r\n");

/** Returns the first response on this connection, or undefined if the server closes it without one. */
export const readAnswer = async (connection: RawConnection): Promise<Answer | undefined> => {
  const received = await connection.until((text) => parse(text) !== undefined);
  return parse(received);
};

export const isAnswered = ({ received }: RawConnection): boolean => parse(received) !== undefined;

/** Sends the raw text, and returns the response. */
export const call = async (url: URL, text: string): Promise<Answer | undefined> => {
  using connection = new RawConnection(url);
  connection.send(text);
  return await readAnswer(connection);
};

const parse = (received: string): Answer | undefined => {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [statusLine = "", ...lines] = received.slice(0, end).split("\r\n");
  const headers = new Headers(
    lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
  const status = Number(statusLine.split(" ")[1]);
  const text = received.slice(end + 4);
  const length = headers.get("content-length");
  // Responses with status 101 or 204 have no body.
  if (length !== null && text.length < Number(length)) return undefined;
  return { status, headers, text: length === null ? text : text.slice(0, Number(length)) };
};

/** Returns one chunk of a chunked body. */
export const formatChunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** Returns a WebSocket handshake. */
export const handshake = (path: string, headers: Record<string, string | number> = {}): string =>
  formatHead("GET", path, {
    Upgrade: "websocket",
    Connection: "Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": 13,
    ...headers,
  });
