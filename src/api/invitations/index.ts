// Invitations: created, listed, resent and revoked by administrators of users or of an organization's members.
import { t } from "elysia";
import {
  invitePeople,
  listVisibleInvitations,
  resendInvitation,
  revokeInvitation,
} from "#domain/invitations/invite.ts";
import { Invitations, Invited, InviteRequest, NewInvitation, ResendRequest } from "#schema/users/invitation.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { requireScope } from "../http/scope-gate.ts";
import { acceptInvitation } from "./accept.ts";

const tags = ["Invitations"];
const params = t.Object({ invitation: t.String({ format: "uuid", description: "The ID of the invitation." }) });

export const invitations = (ctx: ApiContext) =>
  routes({ prefix: "/invitations" })
    .use(acceptInvitation(ctx))
    .use(callers)
    .get("", ({ caller }) => listVisibleInvitations(ctx, caller), {
      user: true,
      response: { 200: Invitations, ...fails(401, 403) },
      detail: operation({
        tags,
        operationId: "listInvitations",
        summary: "List pending invitations",
        description:
          "Returns the invitations that the caller can revoke. Expired invitations are kept for 30 days so that they can be resent.",
        access: "admins",
        scope: "user:read",
      }),
    })
    .post(
      "",
      async ({ caller, body, status }) => {
        if ((body.group_ids?.length ?? 0) > 0) requireScope(caller, "group:update");
        return status(201, await invitePeople(ctx, caller, body));
      },
      {
        user: true,
        body: InviteRequest,
        response: { 201: Invited, ...fails(400, 401, 403, 409, 413, 415) },
        detail: operation({
          tags,
          operationId: "createInvitations",
          summary: "Invite people",
          description:
            "Creates a link for each person that works once, for 7 days. Links are sent by email if an SMTP server is configured, and otherwise returned in the response. Available to owners, user-admins and organization member administrators. Callers can only assign roles that they can grant.",
          example: { people: [{ email: "ada@example.com", name: "Ada Lovelace" }] },
          access: "admins",
          scope: ["user:create", "organization_member:create"],
        }),
      },
    )
    .post(
      "/:invitation/resend",
      async ({ caller, params, body, status }) =>
        status(201, await resendInvitation(ctx, caller, params.invitation, body.by)),
      {
        user: true,
        params,
        body: ResendRequest,
        response: { 201: NewInvitation, ...fails(400, 401, 403, 404, 415) },
        detail: operation({
          tags,
          operationId: "sendInvitation",
          summary: "Resend an invitation",
          description: "Creates a new link, valid for 7 days. The old link stops working.",
          example: { by: "link" },
          access: "users",
          scope: ["user:create", "organization_member:create"],
        }),
      },
    )
    .delete(
      "/:invitation",
      async ({ caller, params, set }) => {
        await revokeInvitation(ctx, caller, params.invitation);
        set.status = 204;
      },
      {
        user: true,
        params,
        response: { 204: NoContent, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "deleteInvitation",
          summary: "Revoke an invitation",
          description: "Deletes the invitation. Its link stops working.",
          access: "users",
          scope: "user:delete",
          changesAccess: "never",
        }),
      },
    );
