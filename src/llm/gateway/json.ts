// What bodies and answers have in common when they are looked at. Pure.

export type Json = Readonly<Record<string, unknown>>;

/** Whether a value is an object with members. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Goes through the objects in a value, itself included. Without recursion: callers nest as deep as they like. */
export function* objectsIn(value: unknown): Generator<Json> {
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== "object" || next === null) continue;
    if (!Array.isArray(next)) yield next as Json;
    for (const inner of Object.values(next)) if (typeof inner === "object") waiting.push(inner);
  }
}
