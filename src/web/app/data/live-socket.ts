// A WebSocket that comes back: after a cut, after sleep, and when the network is there again. It goes on from the last id that its
// owner has seen, so that nothing is missed and nothing is shown twice.
import { signal } from "@preact/signals";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
/** The close code of what has ended. */
const DONE = 1_000;
/** The server pings each 15 s: after this much silence the connection is dead, whatever the browser thinks. */
const SILENCE_MS = 40_000;

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

/** Tries all that are cut at once. */
export const tryNow = (): void => {
  for (const socket of [...cuts.keys()]) socket.open();
};

type Options = {
  /** The path with its query, asked for at each try: this is where the last id goes in. */
  readonly address: () => string;
  readonly message: (data: string) => void;
  /** Open again (or for the first time): who has no cursor reads anew. */
  readonly opened?: () => void;
  /** Closing with 1000 is the end: nothing more follows. */
  readonly ends?: boolean;
  /** Called when it has ended so. */
  readonly ended?: () => void;
  /** The server pings: a long silence means that the line is dead. */
  readonly pings?: boolean;
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
    addEventListener("online", this.#look);
    addEventListener("pageshow", this.#look);
    document.addEventListener("visibilitychange", this.#look);
    this.open();
  }

  /** Opens it now, whatever it waits for. */
  open(): void {
    if (this.#ended) return;
    clearTimeout(this.#timer);
    this.#drop();
    const url = new URL(this.#options.address(), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#heard = Date.now();
    socket.onopen = () => {
      this.#tries = 0;
      this.#since = undefined;
      wasOpen = true;
      report(this, undefined);
      this.#options.opened?.();
    };
    socket.onmessage = ({ data }) => {
      this.#heard = Date.now();
      if (typeof data === "string") this.#options.message(data);
    };
    socket.onclose = ({ code }) => {
      if (this.#options.ends && code === DONE) {
        this.end();
        this.#options.ended?.();
      } else this.#again();
    };
  }

  /** Sends when it is open; what would wait is dropped, since `opened` is told when it is. */
  send(data: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#look);
    removeEventListener("pageshow", this.#look);
    document.removeEventListener("visibilitychange", this.#look);
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
    // Half of it at random, so that a thousand pages do not come back in the same moment.
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#tries);
    const wait = longest / 2 + (Math.random() * longest) / 2;
    this.#tries += 1;
    this.#since ??= Date.now();
    report(this, { state: "cut", since: this.#since, next: Date.now() + wait });
    this.#timer = setTimeout(() => this.open(), wait);
  }

  // A laptop that wakes up has timers that are late and a socket that is dead without having been closed.
  readonly #look = (): void => {
    if (document.hidden || this.#ended) return;
    const isDead = this.#options.pings === true && Date.now() - this.#heard > SILENCE_MS;
    if (!this.#socket || isDead || this.#socket.readyState > WebSocket.OPEN) this.open();
  };
}
