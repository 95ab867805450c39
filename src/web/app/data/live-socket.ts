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
/** After this, a connection attempt is abandoned and retried: lost packets get no response. */
const CONNECT_TIMEOUT_MS = 15_000;
const CHECK_INTERVAL_MS = 5_000;
/** If the clock has jumped this far, the machine slept. */
const SLEEP_THRESHOLD_MS = 30_000;

/** The state of the connection to the server. `since` and `next` are milliseconds since 1970. */
export type Line =
  | { readonly state: "connecting" | "open" }
  | { readonly state: "cut"; readonly since: number; readonly next: number };

/** The worst state of all sockets of this page, shown in the banner. */
export const line = signal<Line>({ state: "connecting" });

const cuts = new Map<LiveSocket, Line & { state: "cut" }>();
let wasOpen = false;

const report = (socket: LiveSocket, cut: (Line & { state: "cut" }) | undefined): void => {
  if (cut) cuts.set(socket, cut);
  else cuts.delete(socket);
  const [first] = cuts.values();
  line.value = first ?? { state: wasOpen ? "open" : "connecting" };
};

/** Retries all broken connections immediately. */
export const reconnectNow = (): void => {
  for (const socket of [...cuts.keys()]) socket.open();
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
  for (const one of sockets) one.abandon(now - CONNECT_TIMEOUT_MS);
  if (!hasSlept && ![...sockets].some((one) => one.isSilent(now - SILENCE_TIMEOUT_MS))) return;
  for (const one of sockets) one.open();
  for (const act of deadListeners) act();
};
setInterval(checkConnections, CHECK_INTERVAL_MS);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  // A gap while the page was hidden does not mean that the machine slept.
  checkedAt = Date.now();
  checkConnections();
});

type Options = {
  /** Returns the path with its query. Called at each attempt, so that it includes the last ID. */
  readonly address: () => string;
  readonly message: (data: string) => void;
  /** Called each time the socket opens. Owners without a cursor reload. */
  readonly opened?: () => void;
  /** The stream is complete when it closes with code 1000; no reconnect follows. */
  readonly ends?: boolean;
  /** Called when the stream is complete. */
  readonly ended?: () => void;
  /** The server pings, so a long silence means that the connection is dead. */
  readonly pings?: boolean;
  /** The socket opens after this resolves, because its first messages have already been loaded. */
  readonly after?: Promise<void> | undefined;
};

export class LiveSocket {
  readonly #options: Options;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tries = 0;
  #since: number | undefined;
  #heardAt = 0;
  #hasEnded = false;

  constructor(options: Options) {
    this.#options = options;
    if (options.after) void options.after.then(() => this.#connect());
    else this.#connect();
  }

  #connect(): void {
    if (this.#hasEnded) return;
    addEventListener("online", this.#look);
    addEventListener("pageshow", this.#look);
    document.addEventListener("visibilitychange", this.#look);
    sockets.add(this);
    this.open();
  }

  /** True if the socket is open and pinged by the server, but nothing has arrived since the given time. */
  isSilent(since: number): boolean {
    return this.#options.pings === true && this.#socket?.readyState === WebSocket.OPEN && this.#heardAt < since;
  }

  /** Abandons a connection attempt that began before the given time. */
  abandon(since: number): void {
    if (this.#socket?.readyState !== WebSocket.CONNECTING || this.#heardAt > since) return;
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
    this.#heardAt = Date.now();
    let wasOpened = false;
    const opened = (): void => {
      wasOpened = true;
      this.#tries = 0;
      this.#since = undefined;
      wasOpen = true;
      report(this, undefined);
      this.#options.opened?.();
    };
    const onMessage = (data: unknown): void => {
      this.#heardAt = Date.now();
      if (typeof data === "string") this.#options.message(data);
    };
    socket.onopen = opened;
    socket.onmessage = ({ data }) => onMessage(data);
    socket.onclose = ({ code }) => {
      if (this.#options.ends && code === COMPLETE_CODE) {
        this.end();
        this.#options.ended?.();
      } else {
        this.#scheduleReconnect();
        if (!wasOpened) for (const act of refusalListeners) act();
      }
    };
    if (early && socket.readyState === WebSocket.OPEN) opened();
    for (const data of early?.heard ?? []) onMessage(data);
  }

  /** Sends if the socket is open; otherwise drops the message, since `opened` is called when it opens. */
  send(data: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#look);
    removeEventListener("pageshow", this.#look);
    document.removeEventListener("visibilitychange", this.#look);
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
    const longest = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** this.#tries);
    const wait = longest / 2 + (Math.random() * longest) / 2;
    this.#tries += 1;
    this.#since ??= Date.now();
    report(this, { state: "cut", since: this.#since, next: Date.now() + wait });
    this.#timer = setTimeout(() => this.open(), wait);
  }

  // The network is back, or the user has returned.
  readonly #look = (): void => {
    if (document.hidden || this.#hasEnded) return;
    if (!this.#socket || this.#socket.readyState > WebSocket.OPEN) this.open();
  };
}
