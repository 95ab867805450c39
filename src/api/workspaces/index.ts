// Routes under /workspaces. The routes that create workspaces are in by-owner.ts.
import { t } from "elysia";
import { notFound } from "#base/errors.ts";
import { canSeeWorkspace } from "#domain/access.ts";
import { workspaceGone } from "#domain/workspaces/find.ts";
import { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import type { ApiContext } from "../context.ts";
import { JSON_HEADERS } from "../http/answers/large-list.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, searchQuery, toPage } from "../http/paging.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { acl } from "./acl.ts";
import { activity } from "./activity.ts";
import { autostart } from "./autostart.ts";
import { autoupdates } from "./autoupdates.ts";
import { workspaceBuilds } from "./builds.ts";
import { WorkspaceCache } from "./cache.ts";
import { dormant } from "./dormant.ts";
import { extend } from "./extend.ts";
import { externalAgent } from "./external-agent.ts";
import { favorite } from "./favorite.ts";
import { forks } from "./forks.ts";
import { homeBackups } from "./home-backups.ts";
import { WorkspaceLists } from "./list.ts";
import { portShares } from "./port-shares.ts";
import { rename } from "./rename.ts";
import { snapshots } from "./snapshots.ts";
import { trash } from "./trash.ts";
import { ttl } from "./ttl.ts";
import { usage } from "./usage.ts";
import { wake } from "./wake.ts";
import { watch } from "./watch.ts";
import { watchAll } from "./watch-all.ts";

const tags = ["Workspaces"];

export const workspaces = (ctx: ApiContext) => {
  const cache = new WorkspaceCache(ctx);
  const lists = new WorkspaceLists(ctx, cache);
  return routes({ prefix: "/workspaces" })
    .use(callers)
    .get(
      "",
      ({ caller, query, request }) =>
        lists.answer(caller, query.q ?? "", { ...toPage(query), after: query.after_id?.toLowerCase() }, request),
      {
        user: true,
        query: t.Object({
          q: searchQuery(
            "A search query of words and `key:value` terms. Keys: id, owner, template, organization, name, status, has-agent, dormant, last_used_after, last_used_before, outdated, healthy, has-ai-task, has_external_agent, shared, shared_with_user, shared_with_group, param.",
          ),
          limit: pageQuery.limit,
          offset: pageQuery.offset,
          after_id: t.Optional(
            t.String({
              format: "uuid",
              description:
                "Return rows after the one with this ID, ordered by ID. For the first page, send 00000000-0000-0000-0000-000000000000.",
            }),
          ),
        }),
        response: { 200: Workspaces, ...fails(400, 401, 503) },
        detail: operation({
          tags,
          operationId: "listWorkspaces",
          summary: "List workspaces",
          description:
            "Returns the workspaces that the caller can see: favorites first, then running ones, then by owner and name. Includes dormant workspaces only with `dormant:true`, and deleted ones only with `status:deleted`. This order changes as workspaces start and stop, so pages by `offset` can skip or repeat workspaces. Pages by `after_id` are ordered by ID and contain each workspace once.",
          access: "users",
          scope: "workspace:read",
        }),
      },
    )
    .get(
      "/:workspace",
      async ({ caller, params, query }) => {
        const includeDeleted = parseFlag(query.include_deleted);
        const stamp = await cache.loadStamp(params.workspace.toLowerCase());
        if (!stamp || !canSeeWorkspace(caller, stamp)) throw notFound();
        if (stamp.deleted && !includeDeleted) throw workspaceGone();
        const json = await cache.read(stamp, caller);
        if (json === undefined) throw notFound();
        return new Response(json, { headers: JSON_HEADERS });
      },
      {
        user: true,
        params: t.Object({ workspace: t.String({ format: "uuid", description: "The ID of the workspace." }) }),
        query: t.Object({ include_deleted: flagQuery("Return deleted workspaces instead of 410.") }),
        response: { 200: Workspace, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "getWorkspace",
          summary: "Get a workspace",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .use(watchAll(ctx))
    .use(externalAgent(ctx))
    .use(favorite(ctx))
    .use(acl(ctx))
    .use(portShares(ctx))
    .use(snapshots(ctx))
    .use(homeBackups(ctx))
    .use(forks(ctx))
    .use(trash(ctx))
    .use(rename(ctx))
    .use(autoupdates(ctx))
    .use(usage(ctx))
    .use(wake(ctx))
    .use(activity(ctx))
    .use(autostart(ctx))
    .use(dormant(ctx))
    .use(extend(ctx))
    .use(ttl(ctx))
    .use(watch(ctx))
    .use(workspaceBuilds(ctx));
};
