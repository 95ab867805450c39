// What bodies and answers have in common when they are looked at. Pure.

export type Json = Readonly<Record<string, unknown>>;

/** Whether a value is an object with members. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Goes through the objects in a value, itself included. Without recursion: callers nest as deep as they like. */
export function* objectsIn(value: unknown): Generator<Json> {
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

/** Puts the objects and lists of a list onto another one. Bodies may have a million numbers. */
export const pushObjects = (waiting: object[], list: readonly unknown[]): void => {
  for (const inner of list) if (typeof inner === "object" && inner !== null) waiting.push(inner);
};
