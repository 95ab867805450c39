// What a page reads besides the live lists: kept for the time of the visit and shown at once when one comes back, while it is read
// anew. Nothing here polls.
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";

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

const load = async <T>(state: Signal<Resource<T>>, read: () => Promise<T>): Promise<void> => {
  if (!state.value.loading) state.value = { ...state.value, loading: true };
  try {
    state.value = { data: await read(), error: undefined, loading: false };
  } catch (error) {
    state.value = { ...state.value, error, loading: false };
  }
};

/** What was read under the key, or is being read; read anew when a page with it is opened. `undefined` as key reads nothing. */
export const useResource = <T>(
  key: string | undefined,
  read: () => Promise<T>,
): { state: ReadonlySignal<Resource<T>>; again: () => Promise<void> } => {
  const state = useMemo(() => entry<T>(key ?? ""), [key]);
  const again = (): Promise<void> => (key === undefined ? Promise.resolve() : load(state, read));
  // Not after the first picture: what was asked for ahead may be here already.
  useLayoutEffect(() => {
    if (key === undefined || opening.has(key)) return;
    opening.set(
      key,
      again().finally(() => opening.delete(key)),
    );
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
