// Parses the search text of the workspaces list (facts/platform 3.3) into a filter. Rejects with 400 and names every invalid key.
import { INACTIVITY_TIMEOUT_MS } from "#actors/agent/status.ts";
import { SearchQuery } from "#base/query.ts";
import type { Scope, WorkspaceFilter } from "#db/workspaces/filter.ts";
import { AGENT_STATUSES } from "#schema/agents/agent.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { BUILD_STATUSES } from "#schema/workspaces/build.ts";
import { canSeeWorkspace } from "../access.ts";

export const parseWorkspaceFilter = (text: string, caller: UserCaller, now: number): WorkspaceFilter => {
  const search = new SearchQuery(text);
  const free = search.ownerAndName();
  const owner = search.text("owner") ?? free.owner;
  const ids = search.uuids("id");
  const hasAgent = search.choices("has-agent", AGENT_STATUSES);
  const shared_with_user = search.text("shared_with_user");
  const filter: WorkspaceFilter = {
    scope: toScope(caller),
    now,
    silence_ms: INACTIVITY_TIMEOUT_MS,
    ids: ids.length > 0 ? ids : undefined,
    owner_id: owner === "me" ? caller.user_id : undefined,
    owner: owner === "me" ? undefined : owner,
    template: search.text("template"),
    organization: search.text("organization"),
    name: search.text("name") ?? free.name,
    status: search.choice("status", BUILD_STATUSES),
    has_agent: hasAgent.length > 0 ? hasAgent : undefined,
    dormant: search.flag("dormant") ?? false,
    last_used_after: search.time("last_used_after"),
    last_used_before: search.time("last_used_before"),
    outdated: search.flag("outdated"),
    healthy: search.flag("healthy"),
    shared: search.flag("shared"),
    shared_with_user: shared_with_user === "me" ? caller.user_id : shared_with_user,
    shared_with_group: search.text("shared_with_group"),
    has_ai_task: search.flag("has-ai-task"),
    has_external_agent: search.flag("has_external_agent"),
    parameters: search.list("param").map(parseParameter),
  };
  search.requireValid("Invalid workspace search query.");
  return filter;
};

const parseParameter = (text: string): { name: string; value?: string } => {
  const index = text.indexOf("=");
  return index < 0 ? { name: text } : { name: text.slice(0, index), value: text.slice(index + 1) };
};

/**
 * Converts `canSeeWorkspace` to a list condition: evaluated for another user's workspace without an organization, and in each organization.
 */
export const toScope = (caller: UserCaller): Scope => {
  const makeForeign = (organization_id: string) => ({
    id: "",
    owner_id: "",
    organization_id,
    user_acl: {},
    group_acl: {},
  });
  if (canSeeWorkspace(caller, makeForeign(""))) return "all";
  const member_of = Object.keys(caller.organizations);
  const organizations = member_of.filter((id) => canSeeWorkspace(caller, makeForeign(id)));
  const { user_id, groups, only_workspace: only } = caller;
  return { user_id, organizations, member_of, groups, only };
};
