// Generates a username for a person who has not chosen one.
import { uuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findUserByName } from "#db/users/users.ts";
import { isFreeName, toUsername } from "./usernames.ts";

/** Returns an unused username derived from the first of these texts that contains letters: `ann`, or `ann-2`, and so on. */
export const findFreeUsername = async (store: Pick<Store, "get">, texts: readonly string[]): Promise<string> => {
  const base = texts.map(toUsername).find((name) => name !== "") ?? "user";
  for (let i = 1; i < 100; i++) {
    const name = i === 1 ? base : `${base}-${i}`;
    if (isFreeName(name) && !(await store.get(findUserByName({ username: name })))) return name;
  }
  return `${base.slice(0, 23)}-${uuid().slice(0, 8)}`;
};
