// A WebSocket that reconnects: after a disconnect, after sleep, and when the network is back. It resumes from the last ID that the caller
// has received, so that nothing is missed or shown twice.
import { signal } from "@preact/signals";
import { takeSocket } from "../../browser/early.ts";

const BASE_DELAY_MS = 500;
const MAX_DELAY_MS = 15_000;
/** The close code of a stream that is complete. */
const COMPLETE_CODE = 1_000;
/** The server pings every 15 s. After this much silence the connection is considered dead, whatever the browser reports. */
const SILENCE_TIMEOUT_MS = 40_000;
/** After this time, a connection attempt is abandoned and retried, because lost packets get no response. */
const CONNECT_TIMEOUT_MS = 15_000;
const CHECK_INTERVAL_MS = 5_000;
/** A gap of this length between two checks means that the machine slept. */
const SLEEP_THRESHOLD_MS = 30_000;

/** The state of the connection to the server. `since` and `next` are milliseconds since 1970. */
export type ConnectionState =
  | { readonly state: "connecting" | "open" }
  | { readonly state: "cut"; readonly since: number; readonly next: number };

/** The worst state of all sockets of this page, shown in the banner. */
export const connection = signal<ConnectionState>({ state: "connecting" });

const brokenSockets = new Map<LiveSocket, ConnectionState & { state: "cut" }>();
let wasOpen = false;

const report = (socket: LiveSocket, cut: (ConnectionState & { state: "cut" }) | undefined): void => {
  if (cut) brokenSockets.set(socket, cut);
  else brokenSockets.delete(socket);
  const [first] = brokenSockets.values();
  connection.value = first ?? { state: wasOpen ? "open" : "connecting" };
};

/** Retries all broken connections immediately. */
export const reconnectNow = (): void => {
  for (const socket of [...brokenSockets.keys()]) socket.open();
};

const sockets = new Set<LiveSocket>();
const deadListeners = new Set<() => void>();
let checkedAt = Date.now();

/** Calls back when a connection turns out to be dead without a close: other connections over the same network must also reconnect. */
export const onDeadConnection = (act: () => void): (() => void) => {
  deadListeners.add(act);
  return () => deadListeners.delete(act);
};

const refusalListeners = new Set<() => void>();

/** Calls back when the server refused a connection attempt: the session may have ended, and a WebSocket does not report why. */
export const onRefused = (act: () => void): (() => void) => {
  refusalListeners.add(act);
  return () => refusalListeners.delete(act);
};

/** Not every stream has pings. If one has been silent for too long, or the machine slept, all sockets of the page reconnect. */
const checkConnections = (): void => {
  const now = Date.now();
  const hasSlept = now - checkedAt > SLEEP_THRESHOLD_MS + CHECK_INTERVAL_MS;
  checkedAt = now;
  // Browsers throttle timers of hidden pages.
  if (document.hidden) return;
  for (const socket of sockets) socket.abandon(now - CONNECT_TIMEOUT_MS);
  if (!hasSlept && ![...sockets].some((socket) => socket.isSilent(now - SILENCE_TIMEOUT_MS))) return;
  for (const socket of sockets) socket.open();
  for (const act of deadListeners) act();
};
setInterval(checkConnections, CHECK_INTERVAL_MS);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  // A gap while the page was hidden does not mean that the machine slept.
  checkedAt = Date.now();
  checkConnections();
});

type SocketOptions = {
  /** Returns the path with its query. Called at each attempt, so that it includes the last ID. */
  readonly address: () => string;
  readonly onMessage: (data: string) => void;
  /** Called each time the socket opens. Owners without a cursor reload. */
  readonly onOpen?: () => void;
  /** The stream is complete when it closes with code 1000; no reconnect follows. */
  readonly ends?: boolean;
  /** Called when the stream is complete. */
  readonly onComplete?: () => void;
  /** The server pings, so a long silence means that the connection is dead. */
  readonly pings?: boolean;
  /** The socket opens after this resolves, because its first messages have already been loaded. */
  readonly after?: Promise<void> | undefined;
};

export class LiveSocket {
  readonly #options: SocketOptions;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempts = 0;
  #brokenSince: number | undefined;
  #receivedAt = 0;
  #hasEnded = false;

  constructor(options: SocketOptions) {
    this.#options = options;
    if (options.after) void options.after.then(() => this.#connect());
    else this.#connect();
  }

  #connect(): void {
    if (this.#hasEnded) return;
    addEventListener("online", this.#reconnectIfBroken);
    addEventListener("pageshow", this.#reconnectIfBroken);
    document.addEventListener("visibilitychange", this.#reconnectIfBroken);
    sockets.add(this);
    this.open();
  }

  /** True if the socket is open and pinged by the server, but nothing has arrived since the given time. */
  isSilent(timeMs: number): boolean {
    return this.#options.pings === true && this.#socket?.readyState === WebSocket.OPEN && this.#receivedAt < timeMs;
  }

  /** Abandons a connection attempt that began before the given time. */
  abandon(timeMs: number): void {
    if (this.#socket?.readyState !== WebSocket.CONNECTING || this.#receivedAt > timeMs) return;
    this.#drop();
    this.#scheduleReconnect();
  }

  /** Opens the socket immediately, without waiting for the next retry. */
  open(): void {
    if (this.#hasEnded) return;
    clearTimeout(this.#timer);
    this.#drop();
    const address = this.#options.address();
    const early = takeSocket(address);
    const socket = early?.socket ?? new WebSocket(new URL(address, location.origin.replace("http", "ws")));
    this.#socket = socket;
    this.#receivedAt = Date.now();
    let wasOpened = false;
    const onOpen = (): void => {
      wasOpened = true;
      this.#attempts = 0;
      this.#brokenSince = undefined;
      wasOpen = true;
      report(this, undefined);
      this.#options.onOpen?.();
    };
    const onMessage = (data: unknown): void => {
      this.#receivedAt = Date.now();
      if (typeof data === "string") this.#options.onMessage(data);
    };
    socket.onopen = onOpen;
    socket.onmessage = ({ data }) => onMessage(data);
    socket.onclose = ({ code }) => {
      if (this.#options.ends && code === COMPLETE_CODE) {
        this.end();
        this.#options.onComplete?.();
      } else {
        this.#scheduleReconnect();
        if (!wasOpened) for (const act of refusalListeners) act();
      }
    };
    if (early && socket.readyState === WebSocket.OPEN) onOpen();
    for (const data of early?.messages ?? []) onMessage(data);
  }

  /** Sends if the socket is open; otherwise drops the message, since `onOpen` is called when it opens. */
  send(data: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#reconnectIfBroken);
    removeEventListener("pageshow", this.#reconnectIfBroken);
    document.removeEventListener("visibilitychange", this.#reconnectIfBroken);
    sockets.delete(this);
    this.#drop();
    report(this, undefined);
  }

  #drop(): void {
    if (!this.#socket) return;
    this.#socket.onclose = null;
    this.#socket.onmessage = null;
    this.#socket.onopen = null;
    this.#socket.close();
    this.#socket = undefined;
  }

  #scheduleReconnect(): void {
    this.#socket = undefined;
    // Half of the delay is random, so that many pages do not reconnect at the same moment.
    const maxDelayMs = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** this.#attempts);
    const delayMs = maxDelayMs / 2 + (Math.random() * maxDelayMs) / 2;
    this.#attempts += 1;
    this.#brokenSince ??= Date.now();
    report(this, { state: "cut", since: this.#brokenSince, next: Date.now() + delayMs });
    this.#timer = setTimeout(() => this.open(), delayMs);
  }

  // The network is back, or the user has returned.
  readonly #reconnectIfBroken = (): void => {
    if (document.hidden || this.#hasEnded) return;
    if (!this.#socket || this.#socket.readyState > WebSocket.OPEN) this.open();
  };
}
