// Server state for administrators: health with the findings of `slipway doctor`, and the peers of the private network.
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { canChangeDeployment, canReadDeployment } from "#domain/access.ts";
import { changeHealthSettings, readHealthSettings } from "#domain/health/health.ts";
import { HealthReport, HealthSettings } from "#schema/deployment/health.ts";
import { named } from "#schema/shape-names.ts";
import { settingTarget } from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["General"];
const user = true;

const checkReader = (caller: UserCaller): void => {
  if (!canReadDeployment(caller)) throw forbidden("Only owners and auditors can see the server's health.");
};

const CoordinatorCounts = named("CoordinatorCounts", t.Object({ peers: t.Integer(), tunnels: t.Integer() }));

const Coordinator = named(
  "Coordinator",
  t.Object({
    peers: t.Array(
      t.Object({
        id: t.String({ format: "uuid" }),
        addresses: t.Array(t.String()),
        preferred_derp: t.Integer(),
        tunnels_to: t.Array(t.String({ format: "uuid" })),
      }),
      { description: "The connected peers; at most 1,000." },
    ),
    counts: CoordinatorCounts,
  }),
);

const Tailnet = named(
  "TailnetStats",
  t.Object({
    relay: t.Object({ clients: t.Integer(), keys: t.Integer() }),
    coordinator: CoordinatorCounts,
  }),
);

export const debug = (ctx: ApiContext) =>
  routes({ prefix: "/debug" })
    .use(callers)
    .get(
      "/health",
      ({ caller, query }) => {
        checkReader(caller);
        return ctx.health.report(parseFlag(query.force));
      },
      {
        user,
        query: t.Object({ force: flagQuery("Run the checks again instead of returning a recent result.") }),
        response: { 200: HealthReport, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "getHealthReport",
          summary: "Get the health report",
          description:
            "Returns the results of `slipway doctor`, and whether the server can reach itself. Refreshed once a minute.",
          access: "admins",
          scope: "debug_info:read",
        }),
      },
    )
    .get(
      "/health/settings",
      ({ caller }) => {
        checkReader(caller);
        return readHealthSettings(ctx.store);
      },
      {
        user,
        response: { 200: HealthSettings, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "getHealthSettings",
          summary: "List dismissed warnings",
          access: "admins",
          scope: "debug_info:read",
        }),
      },
    )
    .put(
      "/health/settings",
      async ({ caller, body }) => {
        if (!canChangeDeployment(caller)) throw forbidden("Only owners can dismiss warnings.");
        await changeHealthSettings(ctx, body);
        return readHealthSettings(ctx.store);
      },
      {
        user,
        body: HealthSettings,
        response: { 200: HealthSettings, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: "updateHealthSettings",
          summary: "Update dismissed warnings",
          description: "Sets which warnings are dismissed. Dismissed warnings don't make the report unhealthy.",
          audit: target.writes(settingTarget("health_settings", "dismissed")),
          example: { dismissed_healthchecks: ["Database"] },
          access: "admins",
          scope: "deployment_config:update",
          outlivesGrant: true,
        }),
      },
    )
    .get(
      "/coordinator",
      async ({ caller }) => {
        checkReader(caller);
        const { peers, coordinator } = await ctx.tailnet.loadAll();
        return { peers: [...peers], counts: coordinator };
      },
      {
        user,
        response: { 200: Coordinator, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "getCoordinator",
          summary: "List peers of the private network",
          access: "admins",
          scope: "debug_info:read",
        }),
      },
    )
    .get(
      "/tailnet",
      async ({ caller }) => {
        checkReader(caller);
        const { relay, coordinator } = await ctx.tailnet.loadAll();
        return { relay, coordinator };
      },
      {
        user,
        response: { 200: Tailnet, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "getTailnetStats",
          summary: "Get relay and coordinator metrics",
          access: "admins",
          scope: "debug_info:read",
        }),
      },
    );
