// Accepts an invitation: creates the account with the invitation's grants, in the batch of the first session (rules IV-4, IV-5).

import { toRfc3339 } from "#base/clock.ts";
import { AppError, conflict, invalid, invalidField } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { addToGroup, findGroup } from "#db/users/groups.ts";
import { findInvitationByToken, type InvitationRow, useInvitation } from "#db/users/invitations.ts";
import { insertMember } from "#db/users/members.ts";
import { findOrganization } from "#db/users/organizations.ts";
import { guardOwner, insertUser, type User } from "#db/users/users.ts";
import type { OpenInvitation } from "#schema/users/invitation.ts";
import { toRelyingParty } from "#src/authentication/webauthn.ts";
import type { DomainContext } from "../context.ts";
import { loadCaller } from "../users/as-caller.ts";
import { auditUserCreated } from "../users/audit.ts";
import { findFreeUsername } from "../users/free-username.ts";
import { makeUser } from "../users/new-user.ts";
import { userCreatedNotices } from "../users/notices.ts";
import { presentRole } from "../users/present.ts";
import { explainDenial } from "./rights.ts";

/** Returns the invitation of this link. Rejects with 404 for an unknown or revoked link and with 410 for an expired one. */
export const findValidInvitation = async (
  { store, clock }: Pick<DomainContext, "store" | "clock">,
  token: string,
): Promise<InvitationRow> => {
  const row = await store.get(findInvitationByToken({ token_hash: sha256(token) }));
  if (!row) {
    throw new AppError("not_found", "This invitation does not exist.", {
      detail: "It was used, revoked or sent again. Look for a newer message, or ask for a new invitation.",
    });
  }
  if (row.expires_at <= clock.now()) {
    throw new AppError("gone", "This invitation has expired.", {
      detail: "Ask the person who invited you to send it again.",
    });
  }
  return row;
};

/** Returns the inviter with their current access. Rejects with 403 when they could not grant this any more. */
const loadInviter = async ({ store }: Pick<DomainContext, "store">, row: InvitationRow) => {
  const inviter = await loadCaller(store, row.invited_by);
  if (inviter && explainDenial(inviter, row) === undefined) return inviter;
  throw new AppError("forbidden", "The person who invited you no longer has the rights that the invitation grants.", {
    detail: "Ask an administrator for a new invitation.",
  });
};

/** Returns what the invited person sees before they accept. */
export const openInvitation = async (ctx: DomainContext, token: string): Promise<OpenInvitation> => {
  const row = await findValidInvitation(ctx, token);
  const inviter = await loadInviter(ctx, row);
  const organization = await ctx.store.get(findOrganization({ id: row.organization_id }));
  const roles = [
    ...row.roles.map((role) => presentRole(role)),
    ...row.organization_roles.map((role) => presentRole(role, row.organization_id)),
  ];
  return {
    email: row.email,
    name: row.name,
    username: await findFreeUsername(ctx, [row.name, row.email.split("@")[0] ?? ""]),
    organization_name: organization ? organization.display_name || organization.name : "",
    roles: roles.map(({ display_name }) => display_name),
    invited_by: inviter.username,
    expires_at: toRfc3339(row.expires_at),
    passkey: toRelyingParty(ctx.accessUrl) !== undefined,
    providers: ctx.oidc.all.map(({ setting, name }) => ({ id: setting.id, name, icon: setting.icon ?? "" })),
  };
};

type Newcomer = Pick<User, "id" | "username" | "name" | "login_type" | "password_hash">;

/** Returns the account and the batch that creates it; the batch fails as `stale` when the invitation was used in the meantime. */
export const makeAccount = async (
  ctx: DomainContext,
  row: InvitationRow,
  newcomer: Newcomer,
): Promise<{ readonly user: User; readonly statements: readonly Statement[] }> => {
  const { store } = ctx;
  const inviter = await loadInviter(ctx, row);
  const now = ctx.clock.now();
  const times = { created_at: now, updated_at: now };
  const { organization_id, organization_roles } = row;
  if (!(await store.get(findOrganization({ id: organization_id })))) {
    throw conflict("The organization that you were invited to was deleted. Ask for a new invitation.");
  }
  const groups = await Promise.all(row.group_ids.map((id) => store.get(findGroup({ id }))));
  // Groups that were deleted since are left out.
  const memberships = groups.flatMap((group) =>
    group?.organization_id === organization_id ? [{ group_id: group.id, organization_id, user_id: newcomer.id }] : [],
  );
  const user = makeUser({ ...newcomer, email: row.email, roles: row.roles, created_at: now });
  const creator = { name: `an invitation of ${inviter.username}`, also: inviter.user_id };
  return {
    user,
    statements: [
      useInvitation(row),
      // Prevents two owners from removing each other at the same moment.
      ...(row.roles.length > 0 ? [guardOwner({ id: inviter.user_id })] : []),
      insertUser(user),
      insertMember({ organization_id, user_id: user.id, roles: organization_roles, ...times }),
      ...addToGroup(memberships),
      auditUserCreated(user, now, creator.name),
      ...(await userCreatedNotices({ store, now }, user, creator)),
    ],
  };
};

/** Requires exactly one of the two. Rejects with 400. */
export const checkSignInMethod = ({
  password,
  passkey,
}: {
  readonly password?: unknown;
  readonly passkey?: unknown;
}): void => {
  if (password === undefined && passkey === undefined)
    throw invalidField("password", "Set a password or use a passkey.");
  if (password !== undefined && passkey !== undefined) {
    throw invalid("Send a password or a passkey, not both.", [{ field: "passkey", detail: "goes without a password" }]);
  }
};
