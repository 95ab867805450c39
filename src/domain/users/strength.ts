// Estimates password strength in a Worker (strength.worker.ts) that starts with the first request and ends after a minute without one.
// There is one per process.
import type { Clock, Timer } from "#base/clock.ts";

/** Only this many characters are examined: the work grows with the square of the length, and a password that is strong so far is strong. */
const MAX_CHECKED_CHARS = 40;
const IDLE_TIMEOUT_MS = 60_000;

type Waiting = { resolve(guesses: number): void; reject(error: Error): void };

let worker: Worker | undefined;
let idleTimer: Timer | undefined;
let lastId = 0;
const waiting = new Map<number, Waiting>();

/** Returns the number of guesses as a power of ten. */
export const estimateGuesses = async (clock: Clock, password: string): Promise<number> => {
  idleTimer?.cancel();
  worker ??= startWorker();
  const id = ++lastId;
  try {
    return await new Promise<number>((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      // Keeps the process alive while waiting for a result.
      worker?.ref();
      worker?.postMessage({ id, password: [...password].slice(0, MAX_CHECKED_CHARS).join("") });
    });
  } finally {
    waiting.delete(id);
    if (waiting.size === 0) {
      worker?.unref();
      idleTimer = clock.after(IDLE_TIMEOUT_MS, stopWorker);
    }
  }
};

const startWorker = (): Worker => {
  const started = new Worker(new URL("./strength.worker.ts", import.meta.url).href);
  started.onmessage = ({ data }: MessageEvent<{ id: number; guesses: number }>) =>
    waiting.get(data.id)?.resolve(data.guesses);
  started.onerror = (event) => {
    stopWorker();
    for (const { reject } of waiting.values()) reject(new Error(`password strength: ${event.message}`));
  };
  return started;
};

const stopWorker = (): void => {
  worker?.terminate();
  worker = undefined;
};
