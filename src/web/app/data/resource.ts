// What a page reads besides the live lists: kept for the time of the visit and shown immediately when one returns, while it is read
// again. Nothing here polls.
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Problem } from "../../browser/api.ts";

export type Resource<T> = {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly loading: boolean;
};

const KEPT = 100;
/** What is being read for a page that was just opened: several of its parts may ask for the same. */
const opening = new Map<string, Promise<void>>();
const cache = new Map<string, Signal<Resource<unknown>>>();

const entry = <T>(key: string): Signal<Resource<T>> => {
  let known = cache.get(key);
  if (!known) {
    known = signal<Resource<unknown>>({ data: undefined, error: undefined, loading: true });
    cache.set(key, known);
    const [oldest] = cache.keys();
    if (cache.size > KEPT && oldest !== undefined) cache.delete(oldest);
  }
  return known as Signal<Resource<T>>;
};

/** `quietly`: a background reload, so a network failure changes nothing on the page; errors from the server still count. */
const load = async <T>(state: Signal<Resource<T>>, read: () => Promise<T>, quietly = false): Promise<void> => {
  if (!quietly && !state.value.loading) state.value = { ...state.value, loading: true };
  try {
    state.value = { data: await read(), error: undefined, loading: false };
  } catch (error) {
    if (quietly && !(error instanceof Problem && error.status >= 400 && error.status < 500)) return;
    state.value = { ...state.value, error, loading: false };
  }
};

type Shown = { readonly again: () => Promise<void>; at: number };

/** What is on the page now. */
const shown = new Set<Shown>();
/** Something was typed or chosen that may not be saved: what it was made from stays as it was read. */
let isWriting = false;
const FRESH_MS = 5_000;

/** Reads again what is shown, all that is older than this. */
export const readShown = (olderMs = 0): void => {
  for (const one of shown) {
    if (Date.now() - one.at < olderMs) continue;
    one.at = Date.now();
    void one.again();
  }
};

// Who returns from another tab or window may have changed there what stands here.
const cameBack = (): void => {
  if (!document.hidden && !isWriting && !document.querySelector("dialog[open]")) readShown(FRESH_MS);
};
addEventListener("focus", cameBack);
document.addEventListener("visibilitychange", cameBack);
addEventListener("input", () => {
  isWriting = true;
});
addEventListener("submit", () => {
  isWriting = false;
});

/** What was read under the key, or is being read; reread when a page with it is opened. `undefined` as key reads nothing. */
export const useResource = <T>(
  key: string | undefined,
  read: () => Promise<T>,
): { state: ReadonlySignal<Resource<T>>; again: () => Promise<void> } => {
  const state = useMemo(() => entry<T>(key ?? ""), [key]);
  const again = (): Promise<void> => (key === undefined ? Promise.resolve() : load(state, read));
  const latest = useRef(again);
  latest.current = () => load(state, read, true);
  // Not after the first picture: what was asked for ahead may be here already.
  useLayoutEffect(() => {
    if (key === undefined) return;
    const one: Shown = { again: () => latest.current(), at: Date.now() };
    shown.add(one);
    if (!opening.has(key)) {
      isWriting = false;
      opening.set(
        key,
        again().finally(() => opening.delete(key)),
      );
    }
    return () => shown.delete(one);
  }, [key]);
  return { state, again };
};

/** Acts when the value is another than it was; not when the page is opened. */
export const useChange = (value: string, act: () => unknown): void => {
  const known = useRef(value);
  useEffect(() => {
    if (known.current !== value) act();
    known.current = value;
  }, [value]);
};
