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

const ACCESS_LOST = "you may no longer open this app";

export type OpenedApp = {
  readonly name: AppName;
  readonly app: ResolvedApp;
  readonly appCaller: AppCaller | undefined;
};

/**
 * Calls `end` once, with a reason, when access is lost, even if that happened while the connection was being set up. Returns a function
 * that stops listening.
 */
export const watchAppAccess = (ctx: ApiContext, opened: OpenedApp, end: (reason: string) => void): (() => void) => {
  const { name, app, appCaller } = opened;
  const { topics } = ctx;
  const cleanups: (() => void)[] = [];
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    for (const cleanUp of cleanups.splice(0)) cleanUp();
  };
  const endOnce = (reason: string): void => {
    if (isOver) return;
    stop();
    end(reason);
  };
  const onLost = (): void => endOnce(ACCESS_LOST);
  const recheck = async (): Promise<void> => {
    const caller = appCaller && (await reloadPerson(ctx, appCaller.caller));
    const current = appCaller && !caller ? undefined : await findApp(ctx, name, caller);
    const isSame = typeof current === "object" && current.agent_id === app.agent_id && current.port === app.port;
    if (!isSame) onLost();
  };
  const onChange = (): void => void recheck().catch(onLost);
  cleanups.push(
    topics.subscribe("access_changed", app.workspace_id, onChange),
    topics.subscribe("agent_gone", app.agent_id, onLost),
    topics.subscribe("missed", "", onChange),
  );
  if (appCaller) {
    cleanups.push(
      topics.subscribe("access_changed", appCaller.caller.user_id, onChange),
      watchKey(ctx, appCaller.caller, endOnce),
    );
    if (appCaller.parent) cleanups.push(watchKey(ctx, { ...appCaller.caller, key_id: appCaller.parent }, endOnce));
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
