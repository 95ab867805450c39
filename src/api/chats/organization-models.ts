// Models an organization wants for what its chats do beside their own words (facts/chats 6): sub-chats, titles, making histories shorter.
// What a person wants for themselves counts before it.
import { Elysia, t } from "elysia";
import { forbidden, invalidField } from "#base/errors.ts";
import { putOrganizationModel, readOrganizationModel } from "#db/chats/settings.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { mayUpdateOrganization } from "#domain/access.ts";
import { effortOf } from "#domain/chats/input.ts";
import { organizationAt, organizationPath } from "#domain/organizations/find.ts";
import {
  ORGANIZATION_CONTEXTS,
  ORGANIZATION_MODES,
  OrganizationOverride,
  PutOrganizationOverride,
} from "#schema/model-override.ts";
import { oneOf } from "#schema/one-of.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";

const user = true;
const tags = ["Models"];

export const organizationModels = (ctx: ApiContext) =>
  new Elysia({ prefix: "/organizations" })
    .use(callers)
    .get(
      "/:organization/chats/model-overrides",
      async ({ caller, params }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        const overrides = ORGANIZATION_CONTEXTS.map(async (context) => ({
          context,
          ...((await readOrganizationModel(ctx.store, id, context)) ?? { mode: ORGANIZATION_MODES[0] }),
        }));
        return { overrides: await Promise.all(overrides) };
      },
      {
        ...{ user, params: organizationPath },
        response: { 200: t.Object({ overrides: t.Array(OrganizationOverride) }), ...fails(400, 401, 404) },
        detail: { tags, summary: "See which models an organization wants beside its chats" },
      },
    )
    .put(
      "/:organization/chats/model-overrides/:context",
      async ({ caller, params, body, status }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        if (!mayUpdateOrganization(caller, id)) throw forbidden("Only administrators of the organization do this.");
        const { context } = params;
        const model = body.model_config_id ? ctx.models.resolve(body.model_config_id.toLowerCase()) : undefined;
        if (body.mode === "model" && !model) throw invalidField("model_config_id", "names no model you can use");
        const effort = effortOf(body.reasoning_effort);
        const wish = { mode: body.mode, ...(model ? { model_config_id: model.id } : {}) };
        const after =
          body.mode === "model" ? { ...wish, ...(effort ? { reasoning_effort: effort } : {}) } : { mode: body.mode };
        const before = await readOrganizationModel(ctx.store, id, context);
        const about = { now: ctx.clock.now(), organization_id: id, resource_id: id, before, after };
        const target = `model_override.${context}`;
        await ctx.store.commit([
          putOrganizationModel(id, context, after),
          audited({ ...about, action: "write", resource_type: "chat_settings", target }),
        ]);
        return status(204, undefined);
      },
      {
        ...{ user, body: PutOrganizationOverride },
        params: t.Object({ ...organizationPath.properties, context: oneOf(ORGANIZATION_CONTEXTS, "What for.") }),
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 413) },
        detail: {
          tags,
          summary: "Choose a model for what an organization's chats do beside their own words",
          description:
            "general, explore: sub-chats, where neither the call nor the person names a model. title_generation: titles; when that model fails there is none. compaction: making long histories shorter.",
        },
      },
    );
