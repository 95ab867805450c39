// Helpers for inspecting JSON bodies and responses. Pure.

export type Json = Readonly<Record<string, unknown>>;

/** True if the value is an object, not an array or null. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Yields all objects in a value, including itself. It is not recursive, because callers can send arbitrarily deep bodies. */
export function* listObjects(value: unknown): Generator<Json> {
  const pending: object[] = typeof value === "object" && value !== null ? [value] : [];
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (Array.isArray(next)) pushObjects(pending, next);
    else {
      yield next as Json;
      for (const name in next) {
        const inner = (next as Json)[name];
        if (typeof inner === "object" && inner !== null) pending.push(inner);
      }
    }
  }
}

/** Appends the objects and arrays of a list to another list. Bodies may contain a million numbers. */
export const pushObjects = (pending: object[], list: readonly unknown[]): void => {
  for (const inner of list) if (typeof inner === "object" && inner !== null) pending.push(inner);
};
