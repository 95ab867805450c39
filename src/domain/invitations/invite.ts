// Invites people and manages pending invitations: list, resend, revoke (rules IV-1 to IV-6).

import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import { toEmailKey } from "#base/email-address.ts";
import { conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { isUuid, uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { type AuditEntry, type AuditedChange, insertAudit } from "#db/reports/audit/audit.ts";
import { listTemplatesByOrganization } from "#db/templates/templates.ts";
import { findGroup } from "#db/users/groups.ts";
import {
  countInvitations,
  deleteInvitation,
  deleteOldInvitations,
  findInvitation,
  findInvitationByEmail,
  type InvitationRow,
  insertInvitation,
  listInvitations,
  updateInvitation,
} from "#db/users/invitations.ts";
import { findOrganization, type OrganizationRow } from "#db/users/organizations.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Invitation, Invitations, Invited, InviteRequest, NewInvitation } from "#schema/users/invitation.ts";
import { canCreateUsers, canSeeOrganization } from "../access.ts";
import { canHaveLocal, explainNoLocal, LOCAL_PROVISIONER } from "../builds/local-rule.ts";
import type { DomainContext } from "../context.ts";
import { requireFullAccess, requireOwnKey } from "../factors/proof.ts";
import { isEveryone } from "../groups/find.ts";
import { getGroupAcl } from "../templates/access-list.ts";
import { findAccountByEmail, toStoredEmail } from "../users/email.ts";
import { getDefaultOrganization } from "../users/first-user.ts";
import { checkOrganizationRoles, checkSiteRoles } from "../users/site-roles.ts";
import { createLink, INVITATION_TTL_MS, type Outgoing, sendLinks, toLink } from "./links.ts";
import { canInvite, type Grant, requireGrantable } from "./rights.ts";

const MAX_PENDING = 1_000;
/** Expired invitations are shown for this long, so that they can be resent. */
const EXPIRED_TTL_MS = 30 * 86_400_000;

const writeAuditEntry = (
  { id, email, organization_id }: InvitationRow,
  change: AuditedChange & Pick<AuditEntry, "additional">,
): Statement =>
  insertAudit({ ...change, resource_type: "invitation", resource_id: id, target: email, organization_id });

/** Invites people; addresses with an account or invitation are skipped and reported. Rejects with 400, 403 or 409. */
export const invitePeople = async (ctx: DomainContext, caller: UserCaller, input: InviteRequest): Promise<Invited> => {
  const { store, clock, mailer } = ctx;
  requireInviter(caller);
  await requireOwnKey(ctx, caller, "invite people");
  const { organization, grant } = await checkRequest(ctx, caller, input);
  requireGrantable(caller, grant);
  if (hasRoles(grant)) await requireFullAccess(ctx, caller, "give roles");
  const now = clock.now();
  const { people, skipped, replaced } = await splitNewcomers(ctx, input.people);
  const pending = (await store.get(countInvitations()))?.count ?? 0;
  if (pending + people.length - replaced.length > MAX_PENDING) {
    throw conflict(`There are ${pending} pending invitations; the limit is ${MAX_PENDING}. Revoke some first.`);
  }
  const created = people.map(({ email, name = "" }) => {
    const link = createLink();
    const row: InvitationRow = {
      id: uuid(),
      email,
      name: name.trim(),
      token_hash: link.token_hash,
      ...grant,
      invited_by: caller.user_id,
      created_at: now,
      expires_at: now + INVITATION_TTL_MS,
      sent_at: null,
      send_problem: "",
    };
    return { row, token: link.token, inviter: caller.username };
  });
  if (created.length > 0) {
    const statements = [
      deleteOldInvitations({ before: now - EXPIRED_TTL_MS }),
      ...replaced.map(({ id }) => deleteInvitation(id)),
      ...created.map(({ row }) => insertInvitation(row)),
      ...created.map(({ row }) => writeAuditEntry(row, { now, action: "create", after: row })),
    ];
    await store.commit(statements).catch((error) => {
      if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
      throw conflict("Someone else invited one of these people at the same moment. Try again.");
    });
  }
  const by_email = mailer.isSetUp;
  if (by_email) sendLinks(ctx, created);
  return {
    invitations: created.map((one) => presentNew(ctx, one, organization.name, !by_email)),
    skipped,
    by_email,
    without_template: !(await hasTemplateForMembers(ctx, organization.id)),
  };
};

const hasRoles = ({ roles, organization_roles }: Grant): boolean => roles.length + organization_roles.length > 0;

const presentNew = (
  ctx: DomainContext,
  { row, token, inviter }: Outgoing,
  organization: string,
  withLink: boolean,
): NewInvitation => {
  const invitation = presentInvitation(row, { inviter, organization }, ctx.clock.now());
  return withLink ? { invitation, link: toLink(ctx, token) } : { invitation };
};

/** Returns the validated request. Rejects with 400 and names the field. */
const checkRequest = async (
  { store }: DomainContext,
  caller: UserCaller,
  input: InviteRequest,
): Promise<{ organization: OrganizationRow; grant: Grant }> => {
  const requested = input.organization_id?.toLowerCase();
  const organization =
    requested === undefined
      ? await getDefaultOrganization(store)
      : await store.get(findOrganization({ id: requested }));
  if (!organization || !canSeeOrganization(caller, organization.id)) {
    throw invalidField("organization_id", "This organization does not exist.");
  }
  const group_ids = [...new Set((input.group_ids ?? []).map((id) => id.toLowerCase()))];
  for (const [index, id] of group_ids.entries()) {
    const group = await store.get(findGroup({ id }));
    // All members are already in the group of all members.
    if (!group || group.organization_id !== organization.id || isEveryone(group)) {
      throw invalidField(`group_ids[${index}]`, "is not a group of this organization");
    }
  }
  const grant = {
    roles: checkSiteRoles(input.roles ?? []),
    organization_id: organization.id,
    organization_roles: checkOrganizationRoles(input.organization_roles ?? []),
    group_ids,
  };
  return { organization, grant };
};

type Newcomers = {
  readonly people: InviteRequest["people"];
  readonly skipped: Invited["skipped"];
  /** Expired invitations of the same addresses. */
  readonly replaced: readonly InvitationRow[];
};

const splitNewcomers = async (
  { store, clock }: DomainContext,
  requested: InviteRequest["people"],
): Promise<Newcomers> => {
  const people = new Map<string, InviteRequest["people"][number]>();
  const skipped: { email: string; reason: string }[] = [];
  const replaced: InvitationRow[] = [];
  for (const [index, { email: address, name }] of requested.entries()) {
    const email = toStoredEmail(address, `people[${index}].email`);
    if (people.has(toEmailKey(email))) continue;
    const [user, pending] = await Promise.all([
      findAccountByEmail(store, address),
      store.get(findInvitationByEmail({ email })),
    ]);
    if (user) skipped.push({ email, reason: `${user.username} already has this address.` });
    else if (pending && pending.expires_at > clock.now()) {
      skipped.push({ email, reason: "This address was already invited. You can send the invitation again." });
    } else {
      people.set(toEmailKey(email), { email, name });
      if (pending) replaced.push(pending);
    }
  }
  return { people: [...people.values()], skipped, replaced };
};

/** Returns the invitations that the caller may revoke. Rejects with 403 when they may not invite anyone. */
export const listVisibleInvitations = async (ctx: DomainContext, caller: UserCaller): Promise<Invitations> => {
  requireInviter(caller);
  const rows = await ctx.store.scan(listInvitations());
  const now = ctx.clock.now();
  return {
    by_email: ctx.mailer.isSetUp,
    invitations: rows
      .filter(({ invitation }) => canInvite(caller, invitation.organization_id))
      .map(({ invitation, inviter, organization }) => presentInvitation(invitation, { inviter, organization }, now)),
  };
};

/** Rejects with 403 unless the caller may invite people to some organization. */
const requireInviter = (caller: UserCaller): void => {
  if (canCreateUsers(caller) || Object.keys(caller.organizations).some((id) => canInvite(caller, id))) return;
  throw forbidden("To invite people you need the right to create users or to add members.");
};

/** Rejects with 404 when there is no visible invitation. */
const findVisible = async ({ store }: DomainContext, caller: UserCaller, id: string): Promise<InvitationRow> => {
  const row = isUuid(id) ? await store.get(findInvitation({ id: id.toLowerCase() })) : undefined;
  if (!row || !canInvite(caller, row.organization_id)) throw notFound();
  return row;
};

/**
 * Creates a new link that is valid for 7 days and invalidates the old one. From now on, it grants with the caller's access. Rejects with
 * 403 or 404.
 */
export const resendInvitation = async (
  ctx: DomainContext,
  caller: UserCaller,
  id: string,
  by: "email" | "link" | undefined,
): Promise<NewInvitation> => {
  const before = await findVisible(ctx, caller, id);
  requireGrantable(caller, before);
  await requireOwnKey(ctx, caller, "invite people");
  if (hasRoles(before)) await requireFullAccess(ctx, caller, "give roles");
  const isMailed = by === undefined ? ctx.mailer.isSetUp : by === "email";
  if (isMailed && !ctx.mailer.isSetUp) throw invalidField("by", "No SMTP server is set up: copy the link instead.");
  const { token, token_hash } = createLink();
  const now = ctx.clock.now();
  const patch = {
    token_hash,
    invited_by: caller.user_id,
    expires_at: now + INVITATION_TTL_MS,
    sent_at: null,
    send_problem: "",
  };
  const row = { ...before, ...patch };
  await ctx.store.commit([
    updateInvitation(row.id, patch, { expect: 1 }),
    writeAuditEntry(row, { now, action: "write", before, after: row, additional: { sent: isMailed } }),
  ]);
  const outgoing = { row, token, inviter: caller.username };
  if (isMailed) sendLinks(ctx, [outgoing]);
  const organization = await ctx.store.get(findOrganization({ id: row.organization_id }));
  return presentNew(ctx, outgoing, organization?.name ?? "", !isMailed);
};

/** Invalidates the link. Rejects with 404. */
export const revokeInvitation = async (ctx: DomainContext, caller: UserCaller, id: string): Promise<void> => {
  const row = await findVisible(ctx, caller, id);
  const deletion = { ...deleteInvitation(row.id), expect: 1 };
  const entry = writeAuditEntry(row, { now: ctx.clock.now(), action: "delete", before: row });
  await ctx.store.commit([deletion, entry]).catch((error) => {
    if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
    throw notFound();
  });
};

const presentInvitation = (
  row: InvitationRow,
  { inviter, organization }: { readonly inviter: string; readonly organization: string },
  now: number,
): Invitation => ({
  id: row.id,
  email: row.email,
  name: row.name,
  roles: row.roles,
  organization_id: row.organization_id,
  organization_name: organization,
  organization_roles: row.organization_roles,
  group_ids: row.group_ids,
  invited_by: inviter,
  created_at: toRfc3339(row.created_at),
  expires_at: toRfc3339(row.expires_at),
  expired: row.expires_at <= now,
  sent_at: toOptionalRfc3339(row.sent_at),
  send_problem: row.send_problem,
});

/** Returns whether at least one template is shared with all members and can be started by them. */
const hasTemplateForMembers = async (
  { store, config }: Pick<DomainContext, "store" | "config">,
  organization_id: string,
): Promise<boolean> => {
  const membersHaveLocal = explainNoLocal(config) === undefined && canHaveLocal(config, []);
  const rows = await store.scan(listTemplatesByOrganization({ organization_id }));
  return rows.some(
    (template) =>
      template.deprecation_message === "" &&
      getGroupAcl(template)[organization_id] !== undefined &&
      (template.provisioner !== LOCAL_PROVISIONER || membersHaveLocal),
  );
};
