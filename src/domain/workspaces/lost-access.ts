// Records that people have lost access to workspaces otherwise than by a change of their shares, so that their agents get new tokens
// (rule AG-28). Losses by a change of shares are recorded by the workspace's actor.
import { log } from "#base/log.ts";
import { readMemberships } from "#db/users/members.ts";
import { listWorkspacesSharedWithAny } from "#db/workspaces/sharing.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "workspaces">;

/** Records it for every workspace that is shared with any of these users, groups and organizations. Never rejects. */
export const recordLostAccess = async ({ store, workspaces }: Deps, subjects: readonly string[]): Promise<void> => {
  if (subjects.length === 0) return;
  try {
    for (const { id } of await store.scan(listWorkspacesSharedWithAny({ subjects: JSON.stringify(subjects) })))
      await workspaces.ask(id, "edit", { type: "lose_access" });
  } catch (error) {
    log("http").error("agents of workspaces keep tokens that someone without access may have: {error}", { error });
  }
};

/** Records it for a user whose account has ended, with all groups and organizations. */
export const recordLostAccount = async (deps: Deps, user_id: string): Promise<void> =>
  recordLostAccess(deps, [user_id, ...(await readMemberships(deps.store, user_id)).groups]);

/** Runs a change of a user's memberships, and records what the user has lost by it. */
export const whileRecordingLosses = async <T>(deps: Deps, user_id: string, change: () => Promise<T>): Promise<T> => {
  const { groups: before } = await readMemberships(deps.store, user_id);
  const result = await change();
  const { groups: after } = await readMemberships(deps.store, user_id);
  await recordLostAccess(
    deps,
    before.filter((id) => !after.includes(id)),
  );
  return result;
};
