// Keys for one workspace, used by programs outside the browser such as editors. They have at most the access of the request's own key,
// expire after some hours, and end with the sign-in they were created in (rule ID-28).
import { toRfc3339 } from "#base/clock.ts";
import { keyId } from "#base/ids.ts";
import { guardKey } from "#db/users/api-keys.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { hasScope } from "#schema/users/scopes.ts";
import type { DomainContext } from "../context.ts";
import { computeSecondsLeft, requireWithinOwn } from "./api-key.ts";
import { auditKeyChanged } from "./audit.ts";
import { createKey } from "./keys.ts";

/** One working day. Use does not extend it. */
export const WORKSPACE_KEY_TTL_SECONDS = 8 * 3600;

/** The scopes an editor needs to connect to a workspace and to start and stop it. */
const SCOPES = [
  ...["workspace:read", "workspace:ssh", "workspace:application_connect"],
  ...["workspace:start", "workspace:stop"],
] as const;

export type WorkspaceKey = { readonly key: string; readonly expires_at: string };

/** Creates a key for this workspace alone; `program` is its purpose and part of its name in the list of tokens. */
export const createWorkspaceKey = async (
  ctx: Pick<DomainContext, "store" | "clock">,
  caller: UserCaller,
  workspace: { readonly workspace_id: string; readonly workspace_name: string },
  program: string,
): Promise<WorkspaceKey> => {
  const now = ctx.clock.now();
  const scopes = SCOPES.filter((scope) => hasScope(caller.scopes, scope));
  const { token, statements, row } = createKey({
    user_id: caller.user_id,
    login_type: "token",
    token_name: `${workspace.workspace_name}-${program}`.slice(0, 48).concat(`-${keyId()}`),
    scopes,
    allowed_addresses: await requireWithinOwn(ctx, caller, { scopes, allowed_addresses: [] }),
    lifetime_seconds: Math.min(WORKSPACE_KEY_TTL_SECONDS, await computeSecondsLeft(ctx, caller, caller.user_id)),
    parent_id: caller.key_id,
    workspace_id: workspace.workspace_id,
    now,
  });
  await ctx.store.commit([
    guardKey({ id: caller.key_id, now }),
    ...statements,
    auditKeyChanged(row, { after: row }, now),
  ]);
  return { key: token, expires_at: toRfc3339(row.expires_at) };
};
