// An organization's models for sub-chats, titles and compaction (facts/chats 6). A user's own choice takes precedence.
import { t } from "elysia";
import { readOrganizationModel } from "#db/chats/settings.ts";
import { setOrganizationModel } from "#domain/chats/settings.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import {
  ORGANIZATION_CONTEXTS,
  ORGANIZATION_MODES,
  OrganizationOverride,
  PutOrganizationOverride,
} from "#schema/chats/model-override.ts";
import { oneOf } from "#schema/one-of.ts";
import * as setting from "../../audit/setting-targets.ts";
import * as target from "../../audit/targets.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails, NoContent } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";

const user = true;
const tags = ["Models"];

export const organizationModels = (ctx: ApiContext) =>
  routes({ prefix: "/organizations" })
    .use(callers)
    .get(
      "/:organization/chats/model-overrides",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        const overrides = ORGANIZATION_CONTEXTS.map(async (context) => ({
          context,
          ...((await readOrganizationModel(ctx.store, id, context)) ?? { mode: ORGANIZATION_MODES[0] }),
        }));
        return { overrides: await Promise.all(overrides) };
      },
      {
        user,
        params: organizationPath,
        response: { 200: t.Object({ overrides: t.Array(OrganizationOverride) }), ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listOrganizationModelOverrides",
          summary: "List an organization's model overrides",
          access: "members",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/:organization/chats/model-overrides/:context",
      async ({ caller, params, body, status }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        await setOrganizationModel(ctx, caller, { organization_id: id, context: params.context }, body);
        return status(204, undefined);
      },
      {
        user,
        body: PutOrganizationOverride,
        params: t.Object({
          ...organizationPath.properties,
          context: oneOf(
            ORGANIZATION_CONTEXTS,
            "What the model is used for: sub-chats, exploration, titles, or summaries.",
          ),
        }),
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 413) },
        detail: operation({
          tags,
          operationId: "setOrganizationModelOverride",
          summary: "Update an organization's model override",
          description:
            "`general`, `explore`: sub-chats for which neither the call nor the user names a model. `title_generation`: titles; if that model fails, the chat gets no title. `compaction`: summaries of long histories.",
          audit: target.writes(setting.organizationModel),
          example: { mode: "chat_default" },
          access: "organization_admins",
          outlivesGrant: true,
          scope: "chat_config:update",
        }),
      },
    );
