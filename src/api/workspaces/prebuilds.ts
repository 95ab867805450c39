// Pauses and resumes prebuilt workspaces.
import { prebuildSettings, setPrebuildSettings } from "#domain/workspaces/prebuild-settings.ts";
import { PrebuildSettings } from "#schema/workspaces/prebuild-settings.ts";
import { settingTarget } from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Workspaces"];
const user = true;

export const prebuilds = (ctx: ApiContext) =>
  routes({ prefix: "/prebuilds" })
    .use(callers)
    .get("/settings", ({ caller }) => prebuildSettings(ctx, caller), {
      user,
      response: { 200: PrebuildSettings, ...fails(401, 403) },
      detail: operation({
        tags,
        operationId: "getPrebuildSettings",
        summary: "Get whether prebuilt workspaces are paused",
        access: "admins",
        scope: "deployment_config:read",
      }),
    })
    .put(
      "/settings",
      async ({ caller, body }) => {
        await setPrebuildSettings(ctx, caller, body);
        return body;
      },
      {
        user,
        body: PrebuildSettings,
        response: { 200: PrebuildSettings, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "updatePrebuildSettings",
          summary: "Pause or resume prebuilt workspaces",
          description:
            "While paused, no prebuilt workspaces are created or removed. Running builds finish, and ready workspaces can be claimed.",
          example: { reconciliation_paused: true },
          audit: target.writes(settingTarget("prebuilds_settings", "reconciliation")),
          access: "admins",
          scope: "deployment_config:update",
          outlivesGrant: true,
        }),
      },
    );
