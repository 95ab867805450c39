// Version and identity of this server, read by clients before sign-in.
import { t } from "elysia";
import { WIRE_VERSION } from "#base/version.ts";
import { loadVapidKeys } from "#db/notifications/settings.ts";
import { loadDeploymentId } from "#db/settings.ts";
import { named } from "#schema/shape-names.ts";
import { makeVapidKeys } from "#src/notify/push.ts";
import type { ApiContext } from "./context.ts";
import { operation } from "./http/operation.ts";
import { routes } from "./http/routes.ts";

const BuildInfo = named(
  "BuildInfo",
  t.Object({
    external_url: t.String({ description: "The URL of the source code and documentation." }),
    version: t.String({
      description:
        "A semantic version with a leading `v`, for the compatibility checks of clients. The version of this server follows the `+`.",
    }),
    dashboard_url: t.String({ description: "The URL that users open in their browser." }),
    workspace_proxy: t.Boolean(),
    agent_api_version: t.String({ description: "The newest supported version of the agent protocol." }),
    provisioner_api_version: t.String(),
    upgrade_message: t.String({
      description: "A message that clients of other versions show; empty if not set.",
    }),
    deployment_id: t.String({
      format: "uuid",
      description: "The ID of the deployment. It doesn't change during the lifetime of the data directory.",
    }),
    webpush_public_key: t.String({ description: "The public key for web push subscriptions, in base64url." }),
    telemetry: t.Boolean({ description: "Whether telemetry is sent. Always false." }),
  }),
);

export const buildinfo = (ctx: ApiContext) =>
  routes().get(
    "/buildinfo",
    async () => ({
      external_url: "",
      version: WIRE_VERSION,
      dashboard_url: ctx.accessUrl.href,
      workspace_proxy: false,
      agent_api_version: "2.10",
      provisioner_api_version: "1.0",
      upgrade_message: "",
      deployment_id: await loadDeploymentId(ctx.store),
      webpush_public_key: (await loadVapidKeys(ctx.store, ctx.encryption, makeVapidKeys)).public_key,
      telemetry: false,
    }),
    {
      response: { 200: BuildInfo },
      detail: operation({
        tags: ["General"],
        operationId: "getBuildInfo",
        access: "anyone",
        summary: "Get build information",
        security: [],
      }),
    },
  );
