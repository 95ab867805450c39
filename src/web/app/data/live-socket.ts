// A WebSocket that returns: after a cut, after sleep, and when the network is there again. It continues from the last id that its
// owner has seen, so that nothing is missed and nothing is shown twice.
import { signal } from "@preact/signals";
import { takeSocket } from "../../browser/early.ts";

const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 15_000;
/** The close code of what has ended. */
const DONE = 1_000;
/** The server pings each 15 s: after this much silence the connection is dead, whatever the browser thinks. */
const SILENCE_MS = 40_000;
/** After this, an attempt is abandoned for the next: lost packets get no response. */
const PATIENCE_MS = 15_000;
const LOOK_MS = 5_000;
/** A clock that has jumped this far means that the machine slept. */
const SLEPT_MS = 30_000;

/** How the page stands with the server. `since` and `next` are milliseconds since 1970. */
export type Line =
  | { readonly state: "connecting" | "open" }
  | { readonly state: "cut"; readonly since: number; readonly next: number };

/** The worst of all sockets of this page: what the banner shows. */
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
export const tryNow = (): void => {
  for (const socket of [...cuts.keys()]) socket.open();
};

const all = new Set<LiveSocket>();
const deaf = new Set<() => void>();
let looked = Date.now();

/** Calls back when a connection turns out to be dead without a close: other connections over the same network must reconnect, too. */
export const onDeadLine = (act: () => void): (() => void) => {
  deaf.add(act);
  return () => deaf.delete(act);
};

const refused = new Set<() => void>();

/** Calls back when an attempt was turned away: the server may have nothing to say to this browser any more, and a WebSocket does not tell. */
export const onRefused = (act: () => void): (() => void) => {
  refused.add(act);
  return () => refused.delete(act);
};

/** Not every stream has pings: where one is silent for too long, or the machine slept, all of the page return. */
const look = (): void => {
  const now = Date.now();
  const slept = now - looked > SLEPT_MS + LOOK_MS;
  looked = now;
  // Browsers throttle timers of hidden pages.
  if (document.hidden) return;
  for (const one of all) one.giveUp(now - PATIENCE_MS);
  if (!slept && ![...all].some((one) => one.isSilent(now - SILENCE_MS))) return;
  for (const one of all) one.open();
  for (const act of deaf) act();
};
setInterval(look, LOOK_MS);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  // What it has not looked at in the meantime says nothing about sleep.
  looked = Date.now();
  look();
});

type Options = {
  /** The path with its query, asked for at each try: this is where the last id goes in. */
  readonly address: () => string;
  readonly message: (data: string) => void;
  /** Open again (or for the first time): who has no cursor reads again. */
  readonly opened?: () => void;
  /** Closing with 1000 is the end: nothing more follows. */
  readonly ends?: boolean;
  /** Called when it has ended so. */
  readonly ended?: () => void;
  /** The server pings: a long silence means that the line is dead. */
  readonly pings?: boolean;
  /** Opened when this is over: what it says first is known. */
  readonly after?: Promise<void> | undefined;
};

export class LiveSocket {
  readonly #options: Options;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tries = 0;
  #since: number | undefined;
  #heard = 0;
  #ended = false;

  constructor(options: Options) {
    this.#options = options;
    if (options.after) void options.after.then(() => this.#begin());
    else this.#begin();
  }

  #begin(): void {
    if (this.#ended) return;
    addEventListener("online", this.#look);
    addEventListener("pageshow", this.#look);
    document.addEventListener("visibilitychange", this.#look);
    all.add(this);
    this.open();
  }

  /** It is open and pinged, and nothing was heard since then. */
  isSilent(since: number): boolean {
    return this.#options.pings === true && this.#socket?.readyState === WebSocket.OPEN && this.#heard < since;
  }

  /** An attempt that began before then has failed. */
  giveUp(since: number): void {
    if (this.#socket?.readyState !== WebSocket.CONNECTING || this.#heard > since) return;
    this.#drop();
    this.#again();
  }

  /** Opens it now, whatever it waits for. */
  open(): void {
    if (this.#ended) return;
    clearTimeout(this.#timer);
    this.#drop();
    const address = this.#options.address();
    const early = takeSocket(address);
    const socket = early?.socket ?? new WebSocket(new URL(address, location.origin.replace("http", "ws")));
    this.#socket = socket;
    this.#heard = Date.now();
    let wasOpened = false;
    const opened = (): void => {
      wasOpened = true;
      this.#tries = 0;
      this.#since = undefined;
      wasOpen = true;
      report(this, undefined);
      this.#options.opened?.();
    };
    const take = (data: unknown): void => {
      this.#heard = Date.now();
      if (typeof data === "string") this.#options.message(data);
    };
    socket.onopen = opened;
    socket.onmessage = ({ data }) => take(data);
    socket.onclose = ({ code }) => {
      if (this.#options.ends && code === DONE) {
        this.end();
        this.#options.ended?.();
      } else {
        this.#again();
        if (!wasOpened) for (const act of refused) act();
      }
    };
    if (early && socket.readyState === WebSocket.OPEN) opened();
    for (const data of early?.heard ?? []) take(data);
  }

  /** Sends if the socket is open; otherwise drops the message, since `opened` is called when it opens. */
  send(data: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#look);
    removeEventListener("pageshow", this.#look);
    document.removeEventListener("visibilitychange", this.#look);
    all.delete(this);
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

  #again(): void {
    this.#socket = undefined;
    // Half of it at random, so that a thousand pages do not return in the same moment.
    const longest = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#tries);
    const wait = longest / 2 + (Math.random() * longest) / 2;
    this.#tries += 1;
    this.#since ??= Date.now();
    report(this, { state: "cut", since: this.#since, next: Date.now() + wait });
    this.#timer = setTimeout(() => this.open(), wait);
  }

  // The network is there again, or the person is.
  readonly #look = (): void => {
    if (document.hidden || this.#ended) return;
    if (!this.#socket || this.#socket.readyState > WebSocket.OPEN) this.open();
  };
}
