// Reads and writes the state of a workspace that an external worker has created: the workspace's place (see tags.ts), and the state of the
// worker's own provisioner. Pure.

type PlacedState = { readonly place?: string; readonly inner: string | null };

const parseState = (state: string | null): PlacedState => {
  if (state === null) return { inner: null };
  try {
    const { place, inner } = JSON.parse(state) as { place?: unknown; inner?: unknown };
    return { ...(typeof place === "string" ? { place } : {}), inner: typeof inner === "string" ? inner : null };
  } catch {
    return { inner: null };
  }
};

export const findPlace = (state: string | null): string | undefined => parseState(state).place;

export const getInnerState = (state: string | null): string | null => parseState(state).inner;

/** Returns the state to store after a build; null if the workspace has no resources. */
export const toPlacedState = (place: string | undefined, inner: string | null, isDelete: boolean): string | null =>
  isDelete || (place === undefined && inner === null) ? null : JSON.stringify({ place, inner });
