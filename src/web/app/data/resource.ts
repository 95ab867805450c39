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
const openingLoads = new Map<string, Promise<void>>();
const cache = new Map<string, Signal<Resource<unknown>>>();

const getEntry = <T>(key: string): Signal<Resource<T>> => {
  let entry = cache.get(key);
  if (!entry) {
    entry = signal<Resource<unknown>>({ data: undefined, error: undefined, loading: true });
    cache.set(key, entry);
    const [oldest] = cache.keys();
    if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest);
  }
  return entry as Signal<Resource<T>>;
};

/**
 * Loads the resource. If `isBackground`, a network failure changes nothing on the page; errors from the server are still
 * shown.
 */
const load = async <T>(state: Signal<Resource<T>>, read: () => Promise<T>, isBackground = false): Promise<void> => {
  if (!isBackground && !state.value.loading) state.value = { ...state.value, loading: true };
  try {
    state.value = { data: await read(), error: undefined, loading: false };
  } catch (error) {
    if (isBackground && !(error instanceof Problem && error.status >= 400 && error.status < 500)) return;
    state.value = { ...state.value, error, loading: false };
  }
};

type VisibleResource = { readonly reload: () => Promise<void>; loadedAt: number };

/** The resources that the page shows now. */
const visibleResources = new Set<VisibleResource>();
/** The user has typed or chosen something that may not be saved yet, so the data it is based on is not reloaded. */
let isEditing = false;
const MAX_AGE_MS = 5_000;

/** Reloads all resources on the page that are older than this. */
export const reloadVisible = (minAgeMs = 0): void => {
  for (const resource of visibleResources) {
    if (Date.now() - resource.loadedAt < minAgeMs) continue;
    resource.loadedAt = Date.now();
    void resource.reload();
  }
};

// The user may have changed this data in another tab or window.
const onReturn = (): void => {
  if (!document.hidden && !isEditing && !document.querySelector("dialog[open]")) reloadVisible(MAX_AGE_MS);
};
addEventListener("focus", onReturn);
document.addEventListener("visibilitychange", onReturn);
addEventListener("input", () => {
  isEditing = true;
});
addEventListener("submit", () => {
  isEditing = false;
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
    const one: VisibleResource = { reload: () => latest.current(), loadedAt: Date.now() };
    visibleResources.add(one);
    if (!openingLoads.has(key)) {
      isEditing = false;
      openingLoads.set(
        key,
        reload().finally(() => openingLoads.delete(key)),
      );
    }
    return () => visibleResources.delete(one);
  }, [key]);
  return { state, reload };
};

/** Calls `act` when the value changes, but not when the page opens. */
export const useChange = (value: string, act: () => unknown): void => {
  const previous = useRef(value);
  useEffect(() => {
    if (previous.current !== value) act();
    previous.current = value;
  }, [value]);
};
