// The listener and the connections of one TCP port of this process, as the system reports them, because the runtime does not expose
// connections that have sent no request. Linux only.
import { ptr } from "bun:ffi";
import { loadSystemLibrary } from "./library.ts";
import { countOpenFiles } from "./open-files.ts";

const SYMBOLS = {
  getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  fcntl: { args: ["i32", "i32"], returns: "i32" },
  listen: { args: ["i32", "i32"], returns: "i32" },
  shutdown: { args: ["i32", "i32"], returns: "i32" },
} as const;

// asm-generic/fcntl.h, asm-generic/socket.h, netinet/tcp.h, sys/socket.h
const F_GETFD = 1;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SHUT_BOTH = 2;
/** The highest limit that systems allow a process (`fs.nr_open`). */
const MAX_DESCRIPTOR = 1_048_576;
const FAMILIES: ReadonlySet<number> = new Set([2, 10]);
/** Offsets in `struct tcp_info` (linux/tcp.h): the state, milliseconds since data arrived, and the bytes that the peer has acknowledged. */
const STATE_OFFSET = 0;
const LAST_RECEIVED_OFFSET = 52;
const BYTES_ACKED_OFFSET = 120;
const TCP_INFO_BYTES = 136;
const ESTABLISHED = 1;
const LISTENING = 10;

export type TcpConnection = {
  readonly descriptor: number;
  readonly peerPort: number;
  /** Whether the peer has ever received a byte. */
  readonly hasAnswered: boolean;
  readonly idleMs: number;
};

export type TcpSockets = { readonly listener: number | undefined; readonly connections: readonly TcpConnection[] };

let library: ReturnType<typeof loadSystemLibrary<typeof SYMBOLS>> | "unknown" = "unknown";
const loadSystem = () => {
  if (library === "unknown") library = loadSystemLibrary(SYMBOLS);
  return library;
};

/**
 * Finds the sockets of a port among all descriptors of this process. Opens no descriptor itself, so that it works when no descriptor is
 * free.
 */
export const findTcpSockets = (port: number): TcpSockets => {
  const system = loadSystem();
  if (!system) return { listener: undefined, connections: [] };
  let listener: number | undefined;
  const connections: TcpConnection[] = [];
  let remaining = countOpenFiles();
  for (let descriptor = 0; remaining > 0 && descriptor < MAX_DESCRIPTOR; descriptor++) {
    if (system.fcntl(descriptor, F_GETFD) < 0) continue;
    remaining--;
    if (readPort(system.getsockname, descriptor) !== port) continue;
    const info = readInfo(system, descriptor);
    const state = info?.getUint8(STATE_OFFSET);
    if (state === LISTENING) listener = descriptor;
    const peerPort = state === ESTABLISHED ? readPort(system.getpeername, descriptor) : undefined;
    if (!info || peerPort === undefined) continue;
    const hasAnswered = info.getBigUint64(BYTES_ACKED_OFFSET, true) > 0n;
    connections.push({ descriptor, peerPort, hasAnswered, idleMs: info.getUint32(LAST_RECEIVED_OFFSET, true) });
  }
  return { listener, connections };
};

/** Shuts down both directions; the owner of the descriptor notices and closes it. */
export const shutDownConnection = ({ descriptor }: TcpConnection): void =>
  void loadSystem()?.shutdown(descriptor, SHUT_BOTH);

/** Limits how many connections wait at a listener to be accepted. */
export const setBacklog = (listener: number, connections: number): void =>
  void loadSystem()?.listen(listener, connections);

type System = NonNullable<ReturnType<typeof loadSystem>>;

/** Returns undefined for anything but a TCP socket over IP. */
const readPort = (getAddress: System["getsockname"], descriptor: number): number | undefined => {
  const address = new Uint8Array(28);
  const length = new Uint32Array([address.length]);
  if (getAddress(descriptor, ptr(address), ptr(length)) !== 0) return undefined;
  const view = new DataView(address.buffer);
  return FAMILIES.has(view.getUint16(0, true)) ? view.getUint16(2) : undefined;
};

const readInfo = ({ getsockopt }: System, descriptor: number): DataView | undefined => {
  const bytes = new Uint8Array(TCP_INFO_BYTES);
  const length = new Uint32Array([bytes.length]);
  const status = getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, ptr(bytes), ptr(length));
  return status === 0 && length[0] === TCP_INFO_BYTES ? new DataView(bytes.buffer) : undefined;
};
