// Data that a page loads in addition to the live lists. It is cached during the visit and shown immediately when the user returns to the
// page, while it is reloaded. There is no polling.
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Problem } from "../../browser/api.ts";

export type Resource<T> = {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly loading: boolean;
};

const MAX_CACHED = 100;
/** Loads in progress for a page that was just opened, since several of its components may request the same data. */
const opening = new Map<string, Promise<void>>();
const cache = new Map<string, Signal<Resource<unknown>>>();

const getEntry = <T>(key: string): Signal<Resource<T>> => {
  let known = cache.get(key);
  if (!known) {
    known = signal<Resource<unknown>>({ data: undefined, error: undefined, loading: true });
    cache.set(key, known);
    const [oldest] = cache.keys();
    if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest);
  }
  return known as Signal<Resource<T>>;
};

/**
 * Loads the resource. With `quietly` (a background reload), a network failure changes nothing on the page; errors from the server are still
 * shown.
 */
const load = async <T>(state: Signal<Resource<T>>, read: () => Promise<T>, quietly = false): Promise<void> => {
  if (!quietly && !state.value.loading) state.value = { ...state.value, loading: true };
  try {
    state.value = { data: await read(), error: undefined, loading: false };
  } catch (error) {
    if (quietly && !(error instanceof Problem && error.status >= 400 && error.status < 500)) return;
    state.value = { ...state.value, error, loading: false };
  }
};

type VisibleResource = { readonly reload: () => Promise<void>; at: number };

/** The resources that the page shows now. */
const visibleResources = new Set<VisibleResource>();
/** The user has typed or chosen something that may not be saved yet, so the data it is based on is not reloaded. */
let isWriting = false;
const MAX_AGE_MS = 5_000;

/** Reloads all resources on the page that are older than this. */
export const readShown = (olderMs = 0): void => {
  for (const one of visibleResources) {
    if (Date.now() - one.at < olderMs) continue;
    one.at = Date.now();
    void one.reload();
  }
};

// The user may have changed this data in another tab or window.
const onReturn = (): void => {
  if (!document.hidden && !isWriting && !document.querySelector("dialog[open]")) readShown(MAX_AGE_MS);
};
addEventListener("focus", onReturn);
document.addEventListener("visibilitychange", onReturn);
addEventListener("input", () => {
  isWriting = true;
});
addEventListener("submit", () => {
  isWriting = false;
});

/** Returns the data cached under the key and loads it when a page with it opens. An `undefined` key loads nothing. */
export const useResource = <T>(
  key: string | undefined,
  read: () => Promise<T>,
): { state: ReadonlySignal<Resource<T>>; reload: () => Promise<void> } => {
  const state = useMemo(() => getEntry<T>(key ?? ""), [key]);
  const reload = (): Promise<void> => (key === undefined ? Promise.resolve() : load(state, read));
  const latest = useRef(reload);
  latest.current = () => load(state, read, true);
  // A layout effect runs before the first paint: prefetched data may already be here.
  useLayoutEffect(() => {
    if (key === undefined) return;
    const one: VisibleResource = { reload: () => latest.current(), at: Date.now() };
    visibleResources.add(one);
    if (!opening.has(key)) {
      isWriting = false;
      opening.set(
        key,
        reload().finally(() => opening.delete(key)),
      );
    }
    return () => visibleResources.delete(one);
  }, [key]);
  return { state, reload };
};

/** Calls `act` when the value changes, but not when the page opens. */
export const useChange = (value: string, act: () => unknown): void => {
  const known = useRef(value);
  useEffect(() => {
    if (known.current !== value) act();
    known.current = value;
  }, [value]);
};
