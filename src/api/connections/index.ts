// The connection log: who connected to which workspace, how, from where and for how long. For users who can read the audit log.
import { t } from "elysia";
import { invalidField } from "#base/errors.ts";
import { findConnectionCursor, listConnections, MAX_CONNECTION_COUNT } from "#db/connections/search.ts";
import { readConnectionRetention } from "#db/connections/settings.ts";
import { presentConnection } from "#domain/connections/present.ts";
import { listLoggedOrganizations, parseConnectionFilter } from "#domain/connections/query.ts";
import { setConnectionRetention } from "#domain/connections/retention.ts";
import { ConnectionLogs, ConnectionRetention } from "#schema/connections.ts";
import * as setting from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Audit"];
const user = true;

export const connections = (ctx: ApiContext) =>
  routes({ prefix: "/connectionlog" })
    .use(callers)
    .get(
      "",
      async ({ caller, query }) => {
        const filter = await parseConnectionFilter(ctx.store, query.q ?? "", caller);
        const { limit, offset } = toPage(query);
        await ctx.connections.flush();
        const id = query.after_id?.toLowerCase();
        const cursor = id === undefined ? undefined : await ctx.store.get(findConnectionCursor({ id }));
        if (id !== undefined && !cursor) throw invalidField("after_id", "There is no entry with this id.");
        const { rows, count } = await listConnections(ctx.store, filter, { limit, offset, cursor });
        return { connection_logs: rows.map(presentConnection), count, count_cap: MAX_CONNECTION_COUNT };
      },
      {
        user,
        query: t.Object({
          q: t.Optional(
            t.String({
              maxLength: 2000,
              description:
                "A search query: a type as a word, and `key:value` terms. Keys: type, status (`ongoing` or `completed`), username (or `me`), user_email, workspace_owner, workspace_owner_email, workspace_id, organization, connection_id, connected_after and connected_before (times such as 2026-01-31T12:00:00Z).",
            }),
          ),
          ...pageQuery,
        }),
        response: { 200: ConnectionLogs, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "listConnectionLogs",
          summary: "List workspace connections",
          description:
            "Returns connections over SSH, editors, terminals, apps and ports, newest first. A browser's requests to an app count as one connection, which ends after 15 minutes without requests.",
          access: "admins",
          scope: "audit_log:read",
        }),
      },
    )
    .get(
      "/retention",
      async ({ caller }) => {
        listLoggedOrganizations(caller);
        return readConnectionRetention(ctx.store);
      },
      {
        user,
        response: { 200: ConnectionRetention, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "getConnectionRetention",
          summary: "Get the connection log retention",
          access: "admins",
          scope: "audit_log:read",
        }),
      },
    )
    .put(
      "/retention",
      async ({ caller, body }) => {
        await setConnectionRetention(ctx, caller, body);
        return body;
      },
      {
        user,
        body: ConnectionRetention,
        response: { 200: ConnectionRetention, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: "updateConnectionRetention",
          summary: "Update the connection log retention",
          description:
            "Sets how many days entries are kept from the start of the connection; 0 keeps them forever. Older entries are deleted within minutes.",
          audit: target.writes(setting.settingTarget("audit_settings", "connection retention")),
          example: { days: 90 },
          access: "admins",
          scope: "all",
          outlivesGrant: true,
        }),
      },
    );
