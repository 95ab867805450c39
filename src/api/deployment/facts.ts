// Facts that clients read before they offer features: the caller's permissions, available features, and whether a newer version exists.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { forbidden } from "#base/errors.ts";
import { VERSION } from "#base/version.ts";
import { canReadDeployment, canViewInsights } from "#domain/access.ts";
import { answerChecks } from "#domain/deployment/authcheck.ts";
import { listDeploymentSettings } from "#domain/deployment/settings.ts";
import { loadDeploymentStats } from "#domain/deployment/stats.ts";
import { AuthAnswers, AuthChecks } from "#schema/deployment/authcheck.ts";
import { DeploymentConfig } from "#schema/deployment/deployment-config.ts";
import { Entitlements } from "#schema/deployment/entitlements.ts";
import { DeploymentStats } from "#schema/deployment/stats.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["General"];
const user = true;

/** Features of this server, under the names that clients ask for. */
const ENTITLED_FEATURES = [
  ...["appearance", "audit_log", "advanced_template_scheduling", "external_provisioner_daemons"],
  ...["multiple_external_auth", "multiple_organizations", "user_role_management"],
  ...["workspace_prebuilds", "workspace_external_agent", "control_shared_ports"],
];
const UNSUPPORTED_FEATURES = [
  "access_control",
  "browser_only",
  "high_availability",
  "scim",
  "workspace_proxy",
  "custom_roles",
  "template_rbac",
  "user_limit",
];

const checkReader = (caller: UserCaller): void => {
  if (!canReadDeployment(caller)) throw forbidden("Only owners and auditors can see the deployment's configuration.");
};

export const deploymentFacts = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post("/authcheck", ({ caller, body }) => answerChecks(ctx.store, caller, body.checks), {
      user,
      body: AuthChecks,
      response: { 200: AuthAnswers, ...fails(400, 401, 413) },
      detail: operation({
        tags,
        operationId: "checkAuthorization",
        summary: "Check permissions",
        description:
          "Returns whether the caller has each permission, by the names of the checks. False for unknown objects and actions.",
        example: { checks: { mine: { object: { resource_type: "workspace", owner_id: "me" }, action: "read" } } },
        access: "users",
        scope: "any",
      }),
    })
    .get(
      "/entitlements",
      () => ({
        features: Object.fromEntries([
          ...ENTITLED_FEATURES.map((name) => [name, { entitlement: "entitled" as const, enabled: true }]),
          ...UNSUPPORTED_FEATURES.map((name) => [name, { entitlement: "not_entitled" as const, enabled: false }]),
        ]),
        warnings: [],
        errors: [],
        has_license: false,
        trial: false,
        require_telemetry: false,
        refreshed_at: toRfc3339(ctx.clock.now()),
      }),
      {
        user,
        response: { 200: Entitlements, ...fails(401) },
        detail: operation({
          tags,
          operationId: "getEntitlements",
          summary: "List features",
          description: "Returns the server's features. None requires a license.",
          access: "users",
          scope: "any",
        }),
      },
    )
    .get(
      "/licenses",
      ({ caller }) => {
        checkReader(caller);
        return [];
      },
      {
        user,
        response: { 200: t.Array(t.Object({})), ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "listLicenses",
          summary: "List licenses",
          description: "Always returns an empty list, because no license is needed.",
          access: "admins",
          scope: "deployment_config:read",
        }),
      },
    )
    .get("/updatecheck", () => ({ current: true, version: VERSION, url: "" }), {
      response: { 200: t.Object({ current: t.Boolean(), version: t.String(), url: t.String() }) },
      detail: operation({
        tags,
        operationId: "checkUpdate",
        access: "anyone",
        summary: "Check for updates",
        description:
          "Returns the server's own version. The server does not contact an update service, and `url` is empty.",
        security: [],
      }),
    })
    .get(
      "/deployment/config",
      ({ caller }) => {
        checkReader(caller);
        return listDeploymentSettings(ctx);
      },
      {
        user,
        response: { 200: DeploymentConfig, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "getDeploymentConfig",
          summary: "List the effective settings",
          description:
            "Returns each setting with the flag, variable or file that its value comes from. Secret values are never returned.",
          access: "admins",
          scope: "deployment_config:read",
        }),
      },
    )
    .get(
      "/deployment/stats",
      ({ caller }) => {
        if (!canViewInsights(caller)) throw forbidden("Only users with access to insights can see these figures.");
        return loadDeploymentStats(ctx);
      },
      {
        user,
        response: { 200: DeploymentStats, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "getDeploymentStats",
          summary: "Get deployment statistics",
          access: "admins",
          scope: "deployment_stats:read",
        }),
      },
    );
