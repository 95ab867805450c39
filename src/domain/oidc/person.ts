// Finds the account of a person from an OpenID Connect provider: the linked one, one without a link that can be linked by its verified
// address, or a new one (rules OI-5, OI-6). Rejections have readable messages; nothing is written here.
import { toEmailKey } from "#base/email-address.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { deleteKeysByUser, listKeyHashes } from "#db/users/api-keys.ts";
import { findInvitationByEmail, findInvitationByToken, type InvitationRow } from "#db/users/invitations.ts";
import { insertMember, type Member } from "#db/users/members.ts";
import { findAnyOidcLink, findOidcLink, guardUnlinked, insertOidcLink } from "#db/users/oidc-links.ts";
import { findUser, findUserByEmail, insertUser, type User, updateUser } from "#db/users/users.ts";
import { markLossesOfUser } from "#db/workspaces/sharing.ts";
import type { DomainContext } from "../context.ts";
import { makeAccount } from "../invitations/accept.ts";
import { auditUserChanged, auditUserCreated } from "../users/audit.ts";
import { getDefaultOrganization, PREBUILDS_USER_ID } from "../users/first-user.ts";
import { findFreeUsername } from "../users/free-username.ts";
import { makeUser } from "../users/new-user.ts";
import { userCreatedNotices } from "../users/notices.ts";
import { requireActive } from "../users/sign-in.ts";
import { applyProviderValues } from "./apply-values.ts";
import { type Identity, type Provider, signInForbidden } from "./identity.ts";

/** The user, and the statements for the sign-in. */
export type Person = {
  readonly user: User;
  readonly statements: readonly Statement[];
  /** For a new account: the memberships that the statements create. Absent for an existing account. */
  readonly memberships?: readonly Pick<Member, "organization_id" | "roles">[];
  /** Whether the statements link an existing account and revoke its keys. */
  readonly revokesKeys?: boolean;
};

/** Rejects with 403 and a readable message. `token_hash` is that of the invitation they came with. */
export const findOrCreatePerson = async (
  ctx: DomainContext,
  provider: Provider,
  identity: Identity,
  token_hash?: string,
): Promise<Person> => {
  const { store } = ctx;
  const { issuer, sign_up } = provider.setting;
  const { subject, email } = identity;
  const link = await store.get(findOidcLink({ issuer, subject }));
  if (link) {
    const user = await store.get(findUser({ id: link.user_id }));
    if (!user) throw signInForbidden("The account that this sign-in belongs to was deleted.");
    return applyProviderValues(ctx, provider, identity, { user: requireActive(user), link });
  }
  const existing = await store.get(findUserByEmail({ email }));
  if (existing) return linkAccount(ctx, provider, identity, existing);
  const invitation = await findInvitation(ctx, provider, identity, token_hash);
  if (invitation) return acceptInvited(ctx, provider, identity, invitation);
  if (!sign_up) throw signInForbidden("You have no account here yet.", "Ask an administrator for an invitation.");
  return signUp(ctx, provider, identity);
};

/**
 * Returns an account with this address that has no link yet, if the operator lets this provider link accounts. An address alone never gives
 * access to a linked account: providers reassign addresses, and not every provider is trusted with every account. The link revokes the
 * account's keys and its password, because another person can have created the account. The password stays if the account has a second
 * factor, which the sign-in also requires, and for owners, who need it when the provider does not work (rule OI-5).
 */
const linkAccount = async (
  ctx: DomainContext,
  { setting, name }: Provider,
  identity: Identity,
  user: User,
): Promise<Person> => {
  if (await ctx.store.get(findAnyOidcLink({ user_id: user.id }))) {
    throw signInForbidden(
      "The account with your email address belongs to another sign-in.",
      `If it is yours, sign in the way you did before. If ${name} gave you a new identity, ask an administrator to remove the old link.`,
    );
  }
  if (user.id === PREBUILDS_USER_ID || !["oidc", "password"].includes(user.login_type)) {
    throw signInForbidden("The account with your email address cannot be signed in to.");
  }
  if (!identity.isVerified) {
    throw signInForbidden(
      "There is an account with your email address.",
      `It is linked only when ${name} says that the address is verified. Ask an administrator for an invitation or for another address.`,
    );
  }
  if (setting.link_accounts !== true) {
    throw signInForbidden(
      "There is an account with your email address, and this provider may not link accounts.",
      user.login_type === "password"
        ? "Sign in with your password."
        : "Ask an administrator to set link_accounts for this provider.",
    );
  }
  requireActive(user);
  const now = ctx.clock.now();
  const keys = await ctx.store.all(listKeyHashes({ user_id: user.id }));
  const losesPassword =
    user.login_type === "password" &&
    !user.roles.includes("owner") &&
    (await ctx.accounts.factors.listMethods(user.id)).length === 0;
  const withoutPassword = { login_type: "oidc", password_hash: "" } as const;
  const notice = insertNotification({
    now,
    user_id: user.id,
    kind: losesPassword ? "sign_in_replaced" : "sign_in_linked",
    values: { provider: name },
    path: "/account/security",
    dedupe: `sign_in_linked:${uuid()}`,
  });
  const statements = [
    guardUnlinked({ user_id: user.id }),
    markLossesOfUser(user.id, now),
    deleteKeysByUser({ user_id: user.id, except: "" }),
    ...writeLink(ctx, setting.issuer, identity, user),
    ...(losesPassword
      ? [
          updateUser(user.id, { ...withoutPassword, updated_at: now }),
          auditUserChanged(user, { login_type: withoutPassword.login_type }, now),
        ]
      : []),
    ...(keys.length > 0 || losesPassword ? [notice] : []),
  ];
  return { user: losesPassword ? { ...user, ...withoutPassword } : user, statements, revokesKeys: true };
};

/** Returns the invitation of the link they followed, or one for their verified address. Rejects when the link is for another address. */
const findInvitation = async (
  { store, clock }: DomainContext,
  { name }: Provider,
  { email, isVerified }: Identity,
  token_hash: string | undefined,
): Promise<InvitationRow | undefined> => {
  if (token_hash === undefined) {
    const row = isVerified ? await store.get(findInvitationByEmail({ email })) : undefined;
    return row && row.expires_at > clock.now() ? row : undefined;
  }
  const row = await store.get(findInvitationByToken({ token_hash }));
  if (!row || row.expires_at <= clock.now())
    throw signInForbidden("This invitation was used or revoked, or has expired.");
  if (toEmailKey(row.email) === toEmailKey(email)) return row;
  throw signInForbidden(
    `The invitation is for ${row.email}, and ${name} says that you are ${email}.`,
    "Sign in there with the invited address, or open the link again and set a password.",
  );
};

const acceptInvited = async (
  ctx: DomainContext,
  { setting }: Provider,
  identity: Identity,
  row: InvitationRow,
): Promise<Person> => {
  const { user, statements } = await makeAccount(ctx, row, {
    id: uuid(),
    username: await findFreeUsername(ctx, listNames(identity)),
    name: identity.name || row.name,
    login_type: "oidc",
    password_hash: "",
  });
  const { organization_id, organization_roles: roles } = row;
  return {
    user,
    memberships: [{ organization_id, roles }],
    statements: [...statements, ...writeLink(ctx, setting.issuer, identity, user)],
  };
};

/** Returns candidates for a username. */
const listNames = ({ username, email }: Identity): string[] =>
  [username, email].map((text) => text.split("@")[0] ?? "");

const writeLink = (
  ctx: DomainContext,
  issuer: string,
  { subject, username, name }: Identity,
  user: Pick<User, "id" | "username">,
): Statement[] => {
  const now = ctx.clock.now();
  const { id: user_id, username: target } = user;
  const after = { issuer, user_id };
  return [
    insertOidcLink({ issuer, subject, user_id, created_at: now, username, name }),
    insertAudit({ now, action: "create", resource_type: "oidc_link", resource_id: user_id, target, after, user_id }),
  ];
};

const signUp = async (
  ctx: DomainContext,
  { setting: { issuer }, name: provider }: Provider,
  identity: Identity,
): Promise<Person> => {
  const { email, name } = identity;
  const now = ctx.clock.now();
  const times = { created_at: now, updated_at: now };
  const username = await findFreeUsername(ctx, listNames(identity));
  const user = makeUser({
    id: uuid(),
    email,
    username,
    name,
    login_type: "oidc",
    password_hash: "",
    roles: [],
    created_at: now,
  });
  const { id: organization_id } = await getDefaultOrganization(ctx.store);
  const reason = `a sign-in at ${provider}`;
  return {
    user,
    memberships: [{ organization_id, roles: [] }],
    statements: [
      insertUser(user),
      insertMember({ organization_id, user_id: user.id, roles: [], ...times }),
      auditUserCreated(user, now, reason),
      ...writeLink(ctx, issuer, identity, user),
      ...(await userCreatedNotices({ store: ctx.store, now }, user, { name: reason })),
    ],
  };
};
