// Deployment facts that clients read at startup: appearance, SSH names, experiments, and app hosts.
import { t } from "elysia";
import { loadDeploymentId } from "#db/settings.ts";
import { changeAppearance, readAppearance } from "#domain/deployment/appearance.ts";
import { Appearance, UpdateAppearance } from "#schema/deployment/appearance.ts";
import { named } from "#schema/shape-names.ts";
import { settingTarget } from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { HOSTNAME_SUFFIX } from "../tailnet/derp-map.ts";
import { debug } from "./debug.ts";
import { deploymentFacts } from "./facts.ts";

const tags = ["General"];

const SshConfig = named(
  "SshConfig",
  t.Object({
    hostname_prefix: t.String({ description: "The prefix of workspace names in an SSH configuration." }),
    hostname_suffix: t.String({ description: "The suffix of workspace names in an SSH configuration." }),
    ssh_config_options: t.Record(t.String(), t.String(), { description: "Additional SSH options, by name." }),
  }),
);

const Region = named(
  "Region",
  t.Object({
    id: t.String({ format: "uuid" }),
    name: t.String(),
    display_name: t.String(),
    icon_url: t.String(),
    healthy: t.Boolean(),
    path_app_url: t.String({ description: "The base URL of apps that are served under a path." }),
    wildcard_hostname: t.String({ description: "The wildcard host name of apps; empty if none is configured." }),
  }),
);

export const deployment = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .use(deploymentFacts(ctx))
    .use(debug(ctx))
    .get("/appearance", () => readAppearance(ctx), {
      response: { 200: Appearance },
      detail: operation({
        tags,
        operationId: "getAppearance",
        access: "anyone",
        summary: "Get the appearance",
        security: [],
      }),
    })
    .put("/appearance", ({ caller, body }) => changeAppearance(ctx, caller, body), {
      user: true,
      body: UpdateAppearance,
      response: { 200: Appearance, ...fails(400, 401, 403, 413) },
      detail: operation({
        tags,
        operationId: "updateAppearance",
        summary: "Update the appearance",
        description: "Omitted fields are unchanged.",
        example: {
          application_name: "Harbour",
          announcement_banners: [
            { enabled: true, message: "Maintenance on Friday at 18:00 UTC.", background_color: "#1f6feb" },
          ],
        },
        audit: target.writes(settingTarget("appearance", "appearance")),
        access: "admins",
        scope: "deployment_config:update",
        outlivesGrant: true,
      }),
    })
    .get(
      "/deployment/ssh",
      () => ({ hostname_prefix: "slipway.", hostname_suffix: HOSTNAME_SUFFIX, ssh_config_options: {} }),
      {
        user: true,
        response: { 200: SshConfig, ...fails(401) },
        detail: operation({
          tags,
          operationId: "getSshConfig",
          summary: "Get the SSH configuration",
          access: "users",
          scope: "any",
        }),
      },
    )
    .get("/experiments", () => [], {
      user: true,
      response: { 200: t.Array(t.String()), ...fails(401) },
      detail: operation({
        tags,
        operationId: "listExperiments",
        summary: "List enabled experiments",
        description: "Always returns an empty list.",
        access: "users",
        scope: "any",
      }),
    })
    .get("/experiments/available", () => ({ safe: [], danger: [] }), {
      user: true,
      response: { 200: t.Object({ safe: t.Array(t.String()), danger: t.Array(t.String()) }), ...fails(401) },
      detail: operation({
        tags,
        operationId: "listAvailableExperiments",
        summary: "List available experiments",
        description: "Always returns an empty list.",
        access: "users",
        scope: "any",
      }),
    })
    .get(
      "/regions",
      async () => ({
        regions: [
          {
            id: await loadDeploymentId(ctx.store),
            name: "primary",
            display_name: "Default",
            icon_url: "",
            healthy: true,
            path_app_url: ctx.accessUrl.href.replace(/\/$/, ""),
            wildcard_hostname: "",
          },
        ],
      }),
      {
        user: true,
        response: { 200: t.Object({ regions: t.Array(Region) }), ...fails(401) },
        detail: operation({
          tags,
          operationId: "listRegions",
          summary: "List regions",
          description: "Returns one region: this server.",
          access: "users",
          scope: "any",
        }),
      },
    );
