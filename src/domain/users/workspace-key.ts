// Keys for one workspace: what a program outside of the browser, such as an editor, gets to reach it. Never more than the request's own key
// may, for some hours, and gone with the sign-in it was made in (rule ID-28).
import { rfc3339 } from "#base/clock.ts";
import { keyId } from "#base/ids.ts";
import { isKeyStill } from "#db/users/api-keys.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { allows } from "#schema/users/scopes.ts";
import type { DomainContext } from "../context.ts";
import { secondsLeft, withinOwn } from "./api-key.ts";
import { keyChanged } from "./audit.ts";
import { newKey } from "./keys.ts";

/** A working day. Use does not extend it. */
export const WORKSPACE_KEY_SECONDS = 8 * 3600;

/** What an editor needs to reach a workspace and to start and stop it. */
const SCOPES = [
  ...["workspace:read", "workspace:ssh", "workspace:application_connect"],
  ...["workspace:start", "workspace:stop"],
] as const;

export type WorkspaceKey = { readonly key: string; readonly expires_at: string };

/** Creates a key for this workspace alone; `program` is what it is for, and part of its name in the list of tokens. */
export const createWorkspaceKey = async (
  ctx: Pick<DomainContext, "store" | "clock">,
  caller: UserCaller,
  workspace: { readonly workspace_id: string; readonly workspace_name: string },
  program: string,
): Promise<WorkspaceKey> => {
  const now = ctx.clock.now();
  const scopes = SCOPES.filter((scope) => allows(caller.scopes, scope));
  const { token, statements, row } = newKey({
    user_id: caller.user_id,
    login_type: "token",
    token_name: `${workspace.workspace_name}-${program}`.slice(0, 48).concat(`-${keyId()}`),
    scopes,
    allowed_addresses: await withinOwn(ctx, caller, { scopes, allowed_addresses: [] }),
    lifetime_seconds: Math.min(WORKSPACE_KEY_SECONDS, await secondsLeft(ctx, caller, caller.user_id)),
    parent_id: caller.key_id,
    workspace_id: workspace.workspace_id,
    now,
  });
  await ctx.store.commit([isKeyStill({ id: caller.key_id, now }), ...statements, keyChanged(row, { after: row }, now)]);
  return { key: token, expires_at: rfc3339(row.expires_at) };
};
