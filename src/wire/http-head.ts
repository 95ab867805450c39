// Encodes the heads of HTTP/1.1 requests, and parses the heads of responses. Parsing is strict, because a response from a workspace must
// not be read differently by two programs (request smuggling).
import { WireError } from "./wire-error.ts";

export type HttpHead = { status: number; headers: Headers };

/** How the end of a response's body is determined. */
export type BodyFraming =
  | { kind: "none" }
  | { kind: "length"; length: number }
  | { kind: "chunked" }
  | { kind: "close" };

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TARGET = /^\/[\x21-\x7e]*$/;

/** Encodes a head. `length`: bytes of the body; undefined for a chunked body. Throws RangeError for values that would corrupt the head. */
export const encodeHead = (
  method: string,
  path: string,
  headers: Iterable<readonly [string, string]>,
  length: number | undefined,
): Uint8Array => {
  if (!TOKEN.test(method) || !TARGET.test(path)) throw new RangeError("The request line has forbidden characters.");
  const lines = [`${method} ${path} HTTP/1.1`];
  let hasHost = false;
  for (const [name, value] of headers) {
    if (!TOKEN.test(name) || /[\r\n\0]/.test(value)) throw new RangeError("A header has forbidden characters.");
    if (/^(content-length|transfer-encoding)$/i.test(name)) continue;
    hasHost ||= name.toLowerCase() === "host";
    lines.push(`${name}: ${value}`);
  }
  if (!hasHost) lines.push("host: workspace");
  if (length === undefined) lines.push("transfer-encoding: chunked");
  else if (length > 0 || method !== "GET") lines.push(`content-length: ${length}`);
  return toRawBytes(`${lines.join("\r\n")}\r\n\r\n`);
};

/** Encodes text one byte per character where possible, which is how received headers were decoded. */
const toRawBytes = (head: string): Uint8Array =>
  /^[\0-\xff]*$/.test(head) ? Buffer.from(head, "latin1") : new TextEncoder().encode(head);

/** Parses the text before the empty line. Throws WireError `protocol`. */
export const parseHead = (text: string): HttpHead => {
  const [first = "", ...lines] = text.split("\r\n");
  const [, status] = /^HTTP\/1\.[01] (\d{3})(?: [^\r\n]*)?$/.exec(first) ?? [];
  if (status === undefined) throw new WireError("protocol", "The answer does not begin as HTTP does.");
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    const value = line.slice(colon + 1).trim();
    if (!TOKEN.test(name) || /[\r\n\0]/.test(value))
      throw new WireError("protocol", "The answer has a malformed header.");
    headers.append(name, value);
  }
  return { status: Number(status), headers };
};

/** Returns how the end of a response's body is determined. Throws WireError `protocol` if the headers contradict each other. */
export const toFraming = (method: string, { status, headers }: HttpHead): BodyFraming => {
  if (method === "HEAD" || status === 204 || status === 304 || status < 200) return { kind: "none" };
  const coding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (coding !== null) {
    if (coding.toLowerCase() !== "chunked" || length !== null)
      throw new WireError("protocol", "The answer's length is ambiguous.");
    return { kind: "chunked" };
  }
  if (length === null) return { kind: "close" };
  if (!/^\d{1,15}$/.test(length)) throw new WireError("protocol", "The answer's length is malformed.");
  return { kind: "length", length: Number(length) };
};
