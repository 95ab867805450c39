// The head of a request, as a spare sees it that passes the request on. Pure. Nothing but the head of the first request of a connection is
// read: the spare tells the active node to close behind it, so there is no second one that the two could understand differently.
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";

/** Bytes of a head. No request has more. */
export const MAX_HEAD_BYTES = 64 * 1024;

const END = Buffer.from("\r\n\r\n");

export type Head = {
  readonly method: string;
  readonly path: string;
  /** The value of its first Host header; empty where it has none. */
  readonly host: string;
  /** It names one host, as a server wants it of HTTP/1.0, too. */
  readonly hasHost: boolean;
  /** What the node says that has passed it on; undefined where none says so. */
  readonly passedOnBy: string | undefined;
  /** A WebSocket, or another protocol, follows. */
  readonly isUpgrade: boolean;
  /** It asks for something and sends no body; a WebSocket may follow. */
  readonly isRead: boolean;
  /** The client sends its body once it is asked to (`Expect: 100-continue`). */
  readonly waits: boolean;
  /** The request without its body, to be looked at and not to be done; undefined where it is none that a server would take. */
  request(): Request | undefined;
  /** The head with the header of this node. */
  passedOn(token: string, address: string): Buffer;
  /** Where the head ends. */
  readonly end: number;
};

/** The head that these bytes begin with; undefined while it is not whole, "wrong" when it is none. */
export const readHead = (bytes: Buffer): Head | "wrong" | undefined => {
  const at = bytes.indexOf(END);
  if (at < 0) return bytes.length > MAX_HEAD_BYTES ? "wrong" : undefined;
  if (at > MAX_HEAD_BYTES) return "wrong";
  const [first = "", ...lines] = bytes.subarray(0, at).toString("latin1").split("\r\n");
  const [, method, path, minor] = /^([A-Z]+) (\S+) HTTP\/1\.([01])$/.exec(first) ?? [];
  // A line that is folded, or that holds a line end of its own, is read in different ways by different programs.
  if (method === undefined || path === undefined || lines.some((line) => !/^[^\s:]+:[^\r\n\0]*$/.test(line)))
    return "wrong";
  const named = (name: string) => lines.filter((line) => line.slice(0, line.indexOf(":")).toLowerCase() === name);
  const hosts = named("host");
  const isUpgrade = named("upgrade").length > 0;
  const hasBody = ["content-length", "transfer-encoding", "expect"].some((name) => named(name).length > 0);
  return {
    method,
    path,
    host: hosts[0]?.slice("host:".length).trim() ?? "",
    hasHost: hosts.length === 1,
    passedOnBy: named(NODE_HEADER)[0]
      ?.slice(NODE_HEADER.length + 1)
      .trim(),
    isUpgrade,
    isRead: (method === "GET" || method === "HEAD") && !hasBody,
    waits: minor === "1" && named("expect").some((line) => /^expect: *100-continue *$/i.test(line)),
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
        // The client was asked to continue: what a server would say about that would stand in front of its answer.
        if (name === NODE_HEADER || name === "expect") return false;
        return isUpgrade || (name !== "connection" && name !== "keep-alive");
      });
      const own = [`${NODE_HEADER}: ${token} ${address}`, ...(isUpgrade ? [] : ["connection: close"])];
      return Buffer.from(`${[first, ...kept, ...own].join("\r\n")}\r\n\r\n`, "latin1");
    },
  };
};

/** What every answer carries (rule HT-11). */
const COMMON = Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`);

/** What a client waits for before it sends a body. */
export const GO_ON: Buffer = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");

/** What a server says to `/healthz`. */
export const ALIVE: Buffer = Buffer.from(
  [
    ...["HTTP/1.1 200 OK", "content-type: text/plain; charset=utf-8", "content-length: 2"],
    ...[...COMMON, "connection: close", "", "OK"],
  ].join("\r\n"),
);

/** A whole answer of a spare's own; `more`: further lines of its head. */
export const plainAnswer = (
  status: "200 OK" | "400 Bad Request" | "500 Internal Server Error" | "503 Service Unavailable",
  said: { readonly message: string },
  more: readonly string[] = [],
): Buffer => {
  const body = JSON.stringify(said);
  const lines = [
    `HTTP/1.1 ${status}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  const again = status.startsWith("503") ? ["retry-after: 1"] : [];
  return Buffer.from(`${[...lines, ...more, ...again, ...COMMON, "connection: close"].join("\r\n")}\r\n\r\n${body}`);
};
