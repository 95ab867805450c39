// Parses the head of a request for a spare that forwards it. Pure. Only the head of a connection's first request is read: the spare tells
// the active node to close after it, so there is no second request that the two could parse differently.
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";

/** Maximum bytes of a head. No valid request has more. */
export const MAX_HEAD_BYTES = 64 * 1024;

const END = Buffer.from("\r\n\r\n");

export type Head = {
  readonly method: string;
  readonly path: string;
  /** The value of the first Host header; empty if none exists. */
  readonly host: string;
  /** True if it names exactly one host, which the server also requires of HTTP/1.0. */
  readonly hasHost: boolean;
  /** The header of the node that forwarded it; undefined if none exists. */
  readonly passedOnBy: string | undefined;
  /** A WebSocket or another protocol follows. */
  readonly isUpgrade: boolean;
  /** A request without a body that only reads; a WebSocket may follow. */
  readonly isRead: boolean;
  /** The client sends its body only when asked to (`Expect: 100-continue`). */
  readonly waits: boolean;
  /** Returns the request without its body, for inspection only; undefined if a server would reject it. */
  request(): Request | undefined;
  /** Returns the head with this node's header added. */
  passedOn(token: string, address: string): Buffer;
  /** The offset at which the head ends. */
  readonly end: number;
};

/** Returns the head at the beginning of these bytes; undefined while it is incomplete, "wrong" if it is invalid. */
export const readHead = (bytes: Buffer): Head | "wrong" | undefined => {
  const at = bytes.indexOf(END);
  if (at < 0) return bytes.length > MAX_HEAD_BYTES ? "wrong" : undefined;
  if (at > MAX_HEAD_BYTES) return "wrong";
  const [first = "", ...lines] = bytes.subarray(0, at).toString("latin1").split("\r\n");
  const [, method, path, minor] = /^([A-Z]+) (\S+) HTTP\/1\.([01])$/.exec(first) ?? [];
  // Folded lines and embedded line ends are parsed differently by different programs.
  if (method === undefined || path === undefined || lines.some((line) => !/^[^\s:]+:[^\r\n\0]*$/.test(line)))
    return "wrong";
  const findLines = (name: string) => lines.filter((line) => line.slice(0, line.indexOf(":")).toLowerCase() === name);
  const hosts = findLines("host");
  const isUpgrade = findLines("upgrade").length > 0;
  const hasBody = ["content-length", "transfer-encoding", "expect"].some((name) => findLines(name).length > 0);
  return {
    method,
    path,
    host: hosts[0]?.slice("host:".length).trim() ?? "",
    hasHost: hosts.length === 1,
    passedOnBy: findLines(NODE_HEADER)[0]
      ?.slice(NODE_HEADER.length + 1)
      .trim(),
    isUpgrade,
    isRead: (method === "GET" || method === "HEAD") && !hasBody,
    waits: minor === "1" && findLines("expect").some((line) => /^expect: *100-continue *$/i.test(line)),
    end: at + END.length,
    request() {
      try {
        const headers = new Headers(
          lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
        );
        return new Request(new URL(path, `http://${headers.get("host")}`).href, { method, headers });
      } catch {
        return undefined;
      }
    },
    passedOn(token, address) {
      const kept = lines.filter((line) => {
        const name = line.slice(0, line.indexOf(":")).toLowerCase();
        // The client was already asked to continue; a server's own "continue" would precede its response.
        if (name === NODE_HEADER || name === "expect") return false;
        return isUpgrade || (name !== "connection" && name !== "keep-alive");
      });
      const own = [`${NODE_HEADER}: ${token} ${address}`, ...(isUpgrade ? [] : ["connection: close"])];
      return Buffer.from(`${[first, ...kept, ...own].join("\r\n")}\r\n\r\n`, "latin1");
    },
  };
};

/** Headers of every response (rule HT-11). */
const COMMON = Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`);

/** Tells a client to send its body. */
export const CONTINUE_RESPONSE: Buffer = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");

/** The server's response to `/healthz`. */
export const HEALTHY_RESPONSE: Buffer = Buffer.from(
  [
    ...["HTTP/1.1 200 OK", "content-type: text/plain; charset=utf-8", "content-length: 2"],
    ...[...COMMON, "connection: close", "", "OK"],
  ].join("\r\n"),
);

/** Returns a complete response from the spare itself; `more` are additional header lines. */
export const toPlainResponse = (
  status: "200 OK" | "400 Bad Request" | "500 Internal Server Error" | "503 Service Unavailable",
  text: { readonly message: string },
  more: readonly string[] = [],
): Buffer => {
  const body = JSON.stringify(text);
  const lines = [
    `HTTP/1.1 ${status}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  const again = status.startsWith("503") ? ["retry-after: 1"] : [];
  return Buffer.from(`${[...lines, ...more, ...again, ...COMMON, "connection: close"].join("\r\n")}\r\n\r\n${body}`);
};
