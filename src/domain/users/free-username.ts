// Generates a username for a person who has not chosen one.
import type { Clock } from "#base/clock.ts";
import { conflict } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findHolder } from "#db/users/former-usernames.ts";
import { findUserByName } from "#db/users/users.ts";
import { isFreeName, toUsername } from "./usernames.ts";

type Deps = { readonly store: Pick<Store, "get">; readonly clock: Pick<Clock, "now"> };

/** Returns whether the name is held for another user who had it until recently (rule ID-34). */
export const isHeldName = async ({ store, clock }: Deps, username: string, user_id?: string): Promise<boolean> => {
  const holder = await store.get(findHolder({ name: username.toLowerCase(), now: clock.now() }));
  return holder !== undefined && holder.user_id !== user_id;
};

/** Rejects with 409 for a name that is held for another user. */
export const requireNotHeld = async (deps: Deps, username: string, user_id?: string): Promise<void> => {
  if (!(await isHeldName(deps, username, user_id))) return;
  throw conflict("This username is reserved for the user who had it before. An administrator can assign it.", [
    { field: "username", detail: "This name was in use until recently." },
  ]);
};

/** Returns an unused username derived from the first of these texts that contains letters: `ann`, or `ann-2`, and so on. */
export const findFreeUsername = async (deps: Deps, texts: readonly string[]): Promise<string> => {
  const { store } = deps;
  const base = texts.map(toUsername).find((name) => name !== "") ?? "user";
  for (let i = 1; i < 100; i++) {
    const name = i === 1 ? base : `${base}-${i}`;
    const isTaken = (await store.get(findUserByName({ username: name }))) !== undefined;
    if (isFreeName(name) && !isTaken && !(await isHeldName(deps, name))) return name;
  }
  return `${base.slice(0, 23)}-${uuid().slice(0, 8)}`;
};
