// Recently opened repositories of a user, for the pages of new workspaces, chats and tasks (rule RW-19).
import { toRfc3339 } from "#base/clock.ts";
import { parseRepositoryAddress } from "#base/links/repository-address.ts";
import { listRepositoryWorkspaces } from "#db/workspaces/repositories.ts";
import {
  parsePlan,
  type RecentRepository,
  type RepositoryAsked,
  type RepositoryPlan,
} from "#schema/templates/repository.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isCoveredByKey } from "../access.ts";
import type { DomainContext } from "../context.ts";

const MAX_OFFERED = 12;

/** Returns each repository, branch and folder once, most recently used first. */
export const listRecentRepositories = async (
  { store }: Pick<DomainContext, "store">,
  caller: UserCaller,
): Promise<RecentRepository[]> => {
  const found = new Map<string, RecentRepository>();
  for (const row of await store.scan(listRepositoryWorkspaces({ owner_id: caller.user_id }))) {
    const plan = isCoveredByKey(caller, row) ? parsePlan(row.value) : undefined;
    if (!plan) continue;
    const repository = toRequest(plan);
    const key = JSON.stringify(repository);
    const existing = found.get(key);
    const workspace = row.deleted ? undefined : { id: row.id, name: row.name };
    if (existing?.workspace || (existing && !workspace)) continue;
    if (!existing && found.size >= MAX_OFFERED) continue;
    const { name } = parseRepositoryAddress(plan.url) ?? plan;
    const used_at = existing?.used_at ?? toRfc3339(row.last_used_at);
    found.set(key, { repository, name, used_at, ...(workspace ? { workspace } : {}) });
  }
  return [...found.values()];
};

/** Returns the request that opens the same repository in its current state. */
const toRequest = ({ url, ref, ref_kind, path, commit }: RepositoryPlan): RepositoryAsked => ({
  url,
  ...(ref_kind === "branch" || ref_kind === "tag" ? { branch: ref.replace(/^refs\/(?:heads|tags)\//, "") } : {}),
  ...(ref_kind === "commit" ? { commit } : {}),
  ...(ref_kind === "pull_request" ? { pull_request: Number(/\d+/.exec(ref)?.[0]) } : {}),
  ...(path === undefined ? {} : { path }),
});
