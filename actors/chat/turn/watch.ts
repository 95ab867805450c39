// Ends the reading of a model's stream that falls silent, or that does not react when it is aborted.
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

/** Yields the source's events. Throws the signal's reason as soon as the signal aborts, even if the source does not react. */
export async function* untilAborted<T>(source: AsyncIterator<T>, signal: AbortSignal): AsyncIterable<T> {
  // Does not race each event against one abort promise, because that promise would keep all events in memory until the stream ends.
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
