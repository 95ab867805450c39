// What the server remembers of a workspace that a worker of its own has brought to life: where it lives, and what the provisioner
// there has left. Pure.

type Left = { readonly place?: string; readonly inner: string | null };

const read = (state: string | null): Left => {
  if (state === null) return { inner: null };
  try {
    const { place, inner } = JSON.parse(state) as { place?: unknown; inner?: unknown };
    return { ...(typeof place === "string" ? { place } : {}), inner: typeof inner === "string" ? inner : null };
  } catch {
    return { inner: null };
  }
};

/** Where the workspace lives; undefined while it lives nowhere. */
export const findPlace = (state: string | null): string | undefined => read(state).place;

/** What the provisioner itself has left. */
export const innerState = (state: string | null): string | null => read(state).inner;

/** What to remember after a build; null once nothing is left anywhere. */
export const stateAt = (place: string | undefined, inner: string | null, isDelete: boolean): string | null =>
  isDelete || (place === undefined && inner === null) ? null : JSON.stringify({ place, inner });
