// Guards a model's stream, which may fall silent or not react when it is aborted.
import type { Clock } from "#base/clock.ts";

/** A stream that is silent for this long is abandoned (facts/chats 5.3). */
export const SILENCE_TIMEOUT_MS = 600_000;

/** Calls `onSilence` after `SILENCE_TIMEOUT_MS` without an event. Uses one timer, which is rescheduled only when it fires. */
export const watchSilence = (clock: Clock, onSilence: () => void): { heard(): void; cancel(): void } => {
  let lastEventAt = clock.monotonic();
  const checkSilence = (): void => {
    const remainingMs = lastEventAt + SILENCE_TIMEOUT_MS - clock.monotonic();
    if (remainingMs <= 0) onSilence();
    else timer = clock.after(remainingMs, checkSilence);
  };
  let timer = clock.after(SILENCE_TIMEOUT_MS, checkSilence);
  return {
    heard: () => {
      lastEventAt = clock.monotonic();
    },
    cancel: () => timer.cancel(),
  };
};

/** Yields events until the signal aborts, then throws the signal's reason immediately, even if the source does not react. */
export async function* untilAborted<T>(source: AsyncIterator<T>, signal: AbortSignal): AsyncIterable<T> {
  // Uses one promise per event, because racing each event against a single abort promise would leak memory until the stream ends.
  let fail: (reason: unknown) => void = () => {};
  const onAbort = () => fail(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  let isDone = false;
  try {
    for (;;) {
      const { value, done } = await new Promise<IteratorResult<T>>((resolve, reject) => {
        fail = reject;
        if (signal.aborted) onAbort();
        else source.next().then(resolve, reject);
      });
      isDone = done === true;
      if (isDone) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    if (!isDone) source.return?.()?.catch?.(() => {});
  }
}
