// Whether workspaces of an organization may be shared. Switching it off ends what is shared (rule SH-12).
import { Elysia, t } from "elysia";
import { endForbiddenChatSharing } from "#actors/chat/background/sharing-limits.ts";
import { endForbiddenSharing } from "#actors/workspace/sharing-limits.ts";
import { forbidden } from "#base/errors.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { findSharingOff, setSharingOff } from "#db/workspaces/sharing.ts";
import { mayUpdateOrganization } from "#domain/access.ts";
import { organizationAt, organizationPath } from "#domain/organizations/find.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails } from "../http/responses.ts";

const tags = ["Organizations"];
const Sharing = t.Object({
  sharing_disabled: t.Boolean({ description: "Workspaces and chats cannot be shared here." }),
});

export const sharing = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .get(
      "/:organization/settings/workspace-sharing",
      async ({ caller, params }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        return { sharing_disabled: (await ctx.store.get(findSharingOff({ organization_id: id }))) !== undefined };
      },
      {
        user: true,
        params: organizationPath,
        response: { 200: Sharing, ...fails(401, 404) },
        detail: { tags, summary: "See whether workspaces may be shared" },
      },
    )
    .patch(
      "/:organization/settings/workspace-sharing",
      async ({ caller, params, body }) => {
        const { id, name } = await organizationAt(ctx.store, params.organization, caller);
        if (!mayUpdateOrganization(caller, id)) throw forbidden("You may not change this organization.");
        const { sharing_disabled } = body;
        const was = (await ctx.store.get(findSharingOff({ organization_id: id }))) !== undefined;
        const told = audited({
          ...{ now: ctx.clock.now(), action: "write", resource_type: "organization", resource_id: id, target: name },
          ...{ organization_id: id, before: { sharing_disabled: was }, after: { sharing_disabled } },
        });
        await ctx.store.commit([setSharingOff(id, sharing_disabled), told]);
        if (sharing_disabled) {
          await endForbiddenSharing(ctx.store, ctx.workspaces, id);
          await endForbiddenChatSharing(ctx.store, ctx.chats, id);
        }
        return { sharing_disabled };
      },
      {
        user: true,
        params: organizationPath,
        body: Sharing,
        response: { 200: Sharing, ...fails(400, 401, 403, 404, 413, 503) },
        detail: {
          tags,
          summary: "Allow or forbid sharing workspaces",
          description: "Forbidding it also ends the sharing of every workspace and chat of the organization.",
        },
      },
    );
