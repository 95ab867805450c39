// Closes the connections of an app's user when they lose access: their key or sign-in is revoked, their roles, shares or the sharing level
// change, or a new build replaces the workspace's build (rule AX-9).

import type { AppName } from "#base/links/app-label.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { readMemberships } from "#db/users/members.ts";
import { findApp, type ResolvedApp } from "#domain/applications/find.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { watchKey } from "../http/revocation.ts";
import type { AppCaller } from "./hand-over.ts";

const LOST = "you may no longer open this app";

export type OpenedApp = { readonly name: AppName; readonly app: ResolvedApp; readonly by: AppCaller | undefined };

/**
 * Calls `end` once, with a reason, including when access was lost while the connection was being set up. Returns a function that stops
 * listening.
 */
export const watchAppAccess = (ctx: ApiContext, opened: OpenedApp, end: (reason: string) => void): (() => void) => {
  const { name, app, by } = opened;
  const { topics } = ctx;
  const stops: (() => void)[] = [];
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    for (const one of stops.splice(0)) one();
  };
  const endOnce = (reason: string): void => {
    if (isOver) return;
    stop();
    end(reason);
  };
  const onLost = (): void => endOnce(LOST);
  const recheck = async (): Promise<void> => {
    const caller = by && (await reloadPerson(ctx, by.caller));
    const now = by && !caller ? undefined : await findApp(ctx, name, caller);
    const isSame = typeof now === "object" && now.agent_id === app.agent_id && now.port === app.port;
    if (!isSame) onLost();
  };
  const onChange = (): void => void recheck().catch(onLost);
  stops.push(
    topics.subscribe("access_changed", app.workspace_id, onChange),
    topics.subscribe("agent_gone", app.agent_id, onLost),
    topics.subscribe("missed", "", onChange),
  );
  if (by) {
    stops.push(topics.subscribe("access_changed", by.caller.user_id, onChange), watchKey(ctx, by.caller, endOnce));
    if (by.parent) stops.push(watchKey(ctx, { ...by.caller, key_id: by.parent }, endOnce));
  }
  onChange();
  return stop;
};

/** Returns the same person with their current roles and memberships. */
const reloadPerson = async ({ store }: ApiContext, caller: UserCaller): Promise<UserCaller | undefined> => {
  const key = await store.get(findKeyWithUser({ id: caller.key_id }));
  if (!key) return undefined;
  return { ...caller, roles: key.roles, ...(await readMemberships(store, caller.user_id)) };
};
