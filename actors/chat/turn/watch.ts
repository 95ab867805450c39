// Reading a model's stream without trusting it: it may fall silent, and it may not notice that nobody wants it any more.
import type { Clock } from "#base/clock.ts";

/** Without a word for so long a stream is given up (facts/chats 5.3). */
export const SILENCE_MS = 600_000;

/** Calls `silent` once nothing was heard for SILENCE_MS. One timer, moved only when it fires. */
export const watchSilence = (clock: Clock, silent: () => void): { heard(): void; cancel(): void } => {
  let last = clock.monotonic();
  const look = (): void => {
    const left = last + SILENCE_MS - clock.monotonic();
    if (left <= 0) silent();
    else timer = clock.after(left, look);
  };
  let timer = clock.after(SILENCE_MS, look);
  return {
    heard: () => {
      last = clock.monotonic();
    },
    cancel: () => timer.cancel(),
  };
};

/** The events until the signal is aborted, which throws its reason at once, whatever the source is doing. */
export async function* untilAborted<T>(source: AsyncIterator<T>, signal: AbortSignal): AsyncIterable<T> {
  // One promise for each event: racing them all against one of the abort would keep something of each until the stream ends.
  let fail: (reason: unknown) => void = () => {};
  const leave = () => fail(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  let isDone = false;
  try {
    for (;;) {
      const { value, done } = await new Promise<IteratorResult<T>>((resolve, reject) => {
        fail = reject;
        if (signal.aborted) leave();
        else source.next().then(resolve, reject);
      });
      isDone = done === true;
      if (isDone) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", leave);
    if (!isDone) source.return?.()?.catch?.(() => {});
  }
}
