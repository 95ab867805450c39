// Parses the head of a request that a standby node forwards. Pure. The standby node reads only the head of a connection's first request: it
// asks the active node to close the connection after the response, so there is no second request that the two could parse differently, or
// that the active node would attribute to this node. After a request for a WebSocket, only the frames of an open one are forwarded (link.ts).
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";

/** Maximum bytes of a head. Valid requests have fewer. */
export const MAX_HEAD_BYTES = 64 * 1024;

const END = Buffer.from("\r\n\r\n");

export type Head = {
  readonly method: string;
  readonly path: string;
  /** The value of the first Host header; empty if the request has none. */
  readonly host: string;
  /** True if the request has exactly one Host header. The server also requires this of HTTP/1.0. */
  readonly hasHost: boolean;
  /** The value of the header that nodes add to forwarded requests; undefined if the request has none. */
  readonly nodeHeader: string | undefined;
  /** The request asks for a WebSocket. */
  readonly isUpgrade: boolean;
  /** A request without a body that only reads; a WebSocket may follow. */
  readonly isRead: boolean;
  /** The client sends its body only when asked to (`Expect: 100-continue`). */
  readonly expectsContinue: boolean;
  /** Returns the request without its body, for inspection only; undefined if a server would reject it. */
  request(): Request | undefined;
  /** Returns the head with this node's header added. */
  toForwardedHead(token: string, clientAddress: string): Buffer;
  /** The offset of the first byte after the head. */
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
  const hasLength = findLines("content-length").some((line) => !/^content-length: *0 *$/i.test(line));
  const hasBody = hasLength || ["transfer-encoding", "expect"].some((name) => findLines(name).length > 0);
  const isRead = (method === "GET" || method === "HEAD") && !hasBody;
  const isUpgrade = isRead && findLines("upgrade").some((line) => /^upgrade: *websocket *$/i.test(line));
  return {
    method,
    path,
    host: hosts[0]?.slice("host:".length).trim() ?? "",
    hasHost: hosts.length === 1,
    nodeHeader: findLines(NODE_HEADER)[0]
      ?.slice(NODE_HEADER.length + 1)
      .trim(),
    isUpgrade,
    isRead,
    expectsContinue: minor === "1" && findLines("expect").some((line) => /^expect: *100-continue *$/i.test(line)),
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
    toForwardedHead(token, clientAddress) {
      const kept = lines.filter((line) => {
        const name = line.slice(0, line.indexOf(":")).toLowerCase();
        // This node has already sent "continue" to the client; a second one from the server would precede the response.
        if (name === NODE_HEADER || name === "expect") return false;
        return isUpgrade || !["connection", "keep-alive", "upgrade"].includes(name);
      });
      const own = [`${NODE_HEADER}: ${token} ${clientAddress}`, ...(isUpgrade ? [] : ["connection: close"])];
      return Buffer.from(`${[first, ...kept, ...own].join("\r\n")}\r\n\r\n`, "latin1");
    },
  };
};

/** Headers of every response (rule HT-11). */
const COMMON = Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`);

/** The response that asks a client to send its body. */
export const CONTINUE_RESPONSE: Buffer = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");

/** The server's response to `/healthz`. */
export const HEALTHY_RESPONSE: Buffer = Buffer.from(
  [
    ...["HTTP/1.1 200 OK", "content-type: text/plain; charset=utf-8", "content-length: 2"],
    ...[...COMMON, "connection: close", "", "OK"],
  ].join("\r\n"),
);

/** Returns a complete response from the standby node itself, with additional header lines. */
export const toPlainResponse = (
  status: "200 OK" | "400 Bad Request" | "500 Internal Server Error" | "503 Service Unavailable",
  content: { readonly message: string },
  extraLines: readonly string[] = [],
): Buffer => {
  const body = JSON.stringify(content);
  const lines = [
    `HTTP/1.1 ${status}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  const retry = status.startsWith("503") ? ["retry-after: 1"] : [];
  const all = [...lines, ...extraLines, ...retry, ...COMMON, "connection: close"];
  return Buffer.from(`${all.join("\r\n")}\r\n\r\n${body}`);
};
