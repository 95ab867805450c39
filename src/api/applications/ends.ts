// Closes the connections of an app's user when they lose access: their key or sign-in is revoked, their roles, shares or the sharing level
// change, or a new build replaces the workspace's build (rule AX-9).

import type { AppName } from "#base/links/app-label.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { readMemberships } from "#db/users/members.ts";
import { type AppPlace, findApp } from "#domain/applications/find.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { whenKeyGone } from "../http/revocation.ts";
import type { AppCaller } from "./hand-over.ts";

const LOST = "you may no longer open this app";

export type Opened = { readonly name: AppName; readonly place: AppPlace; readonly by: AppCaller | undefined };

/**
 * Calls `end` once, with a reason, including when access was lost while the connection was being set up. Returns a function that stops
 * listening.
 */
export const whenAppLost = (ctx: ApiContext, opened: Opened, end: (reason: string) => void): (() => void) => {
  const { name, place, by } = opened;
  const { topics } = ctx;
  const stops: (() => void)[] = [];
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    for (const one of stops.splice(0)) one();
  };
  const gone = (reason: string): void => {
    if (isOver) return;
    stop();
    end(reason);
  };
  const lost = (): void => gone(LOST);
  const look = async (): Promise<void> => {
    const caller = by && (await personNow(ctx, by.caller));
    const now = by && !caller ? undefined : await findApp(ctx, name, caller);
    const isSame = typeof now === "object" && now.agent_id === place.agent_id && now.port === place.port;
    if (!isSame) lost();
  };
  const again = (): void => void look().catch(lost);
  stops.push(
    topics.subscribe("access_changed", place.workspace_id, again),
    topics.subscribe("agent_gone", place.agent_id, lost),
    topics.subscribe("missed", "", again),
  );
  if (by) {
    stops.push(topics.subscribe("access_changed", by.caller.user_id, again), whenKeyGone(ctx, by.caller, gone));
    if (by.parent) stops.push(whenKeyGone(ctx, { ...by.caller, key_id: by.parent }, gone));
  }
  again();
  return stop;
};

/** Returns the same person with their current roles and memberships. */
const personNow = async ({ store }: ApiContext, caller: UserCaller): Promise<UserCaller | undefined> => {
  const key = await store.get(findKeyWithUser({ id: caller.key_id }));
  if (!key) return undefined;
  return { ...caller, roles: key.roles, ...(await readMemberships(store, caller.user_id)) };
};
