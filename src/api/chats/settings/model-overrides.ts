// A user's model choices for their own chats (facts/chats 4.19), while administrators allow them. The choice for `root` is used when a
// request to create a chat names no model.
import { t } from "elysia";
import { forbidden, notFound } from "#base/errors.ts";
import { readChatSetting } from "#db/chats/settings.ts";
import { setModelOverride } from "#domain/chats/settings.ts";
import { loadOverride } from "#domain/chats/wanted-model.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import { findUserInPath, userPath } from "#domain/users/find.ts";
import {
  ModelOverride,
  OVERRIDE_CONTEXTS,
  type OverrideContext,
  PutModelOverride,
} from "#schema/chats/model-override.ts";
import { oneOf } from "#schema/one-of.ts";
import * as setting from "../../audit/setting-targets.ts";
import * as target from "../../audit/targets.ts";
import type { ApiContext } from "../../context.ts";
import { callers, type UserCaller } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails, NoContent } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";

const user = true;
const tags = ["Models"];
const path = t.Object({ ...organizationPath.properties, ...userPath.properties });

export const modelOverrides = (ctx: ApiContext) => {
  /** Rejects with 404 for what the caller cannot see, and with 403 for other users' choices and when the feature is disabled. */
  const requireOwn = async (caller: UserCaller, params: { organization: string; user: string }): Promise<string> => {
    const { id } = await loadOrganization(ctx.store, params.organization, caller);
    const target = await findUserInPath(ctx.store, params.user, caller);
    if (target.id !== caller.user_id) throw forbidden("You can set only your own model overrides.");
    if (!(id in caller.organizations)) throw notFound();
    if (!(await readChatSetting(ctx.store, "allow_model_overrides"))) {
      throw forbidden("An administrator must allow this first.");
    }
    return id;
  };
  return routes({ prefix: "/organizations" })
    .use(callers)
    .get(
      "/:organization/members/:user/chats/model-overrides",
      async ({ caller, params }) => {
        const id = await requireOwn(caller, params);
        const loadOne = (context: OverrideContext) => loadOverride(ctx, id, caller.user_id, context);
        return { overrides: await Promise.all(OVERRIDE_CONTEXTS.map(loadOne)) };
      },
      {
        user,
        params: path,
        response: { 200: t.Object({ overrides: t.Array(ModelOverride) }), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listModelOverrides",
          summary: "List your model overrides",
          access: "owner_only",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/:organization/members/:user/chats/model-overrides/:context",
      async ({ caller, params, body, status }) => {
        const organization_id = await requireOwn(caller, params);
        await setModelOverride(ctx, { organization_id, user_id: caller.user_id, context: params.context }, body);
        return status(204, undefined);
      },
      {
        user,
        body: PutModelOverride,
        params: t.Object({
          ...path.properties,
          context: oneOf(OVERRIDE_CONTEXTS, "What the model is used for: the chat itself, a sub-chat, or exploration."),
        }),
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 413) },
        detail: operation({
          tags,
          operationId: "setModelOverride",
          summary: "Update a model override",
          description: "Applies to new chats whose request names no model, if administrators allow it.",
          audit: target.writes(setting.memberModel),
          example: { mode: "chat_default" },
          outlivesGrant: true,
          access: "owner_only",
          scope: "chat_config:update",
        }),
      },
    );
};
