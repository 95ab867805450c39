// Helpers for inspecting JSON bodies and responses. Pure.

export type Json = Readonly<Record<string, unknown>>;

/** True if the value is an object, not an array or null. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Yields all objects in a value, including itself. Not recursive, because callers can nest arbitrarily deep. */
export function* listObjects(value: unknown): Generator<Json> {
  const waiting: object[] = typeof value === "object" && value !== null ? [value] : [];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (Array.isArray(next)) pushObjects(waiting, next);
    else {
      yield next as Json;
      for (const name in next) {
        const inner = (next as Json)[name];
        if (typeof inner === "object" && inner !== null) waiting.push(inner);
      }
    }
  }
}

/** Appends the objects and arrays of a list to another list. Bodies may contain a million numbers. */
export const pushObjects = (waiting: object[], list: readonly unknown[]): void => {
  for (const inner of list) if (typeof inner === "object" && inner !== null) waiting.push(inner);
};
