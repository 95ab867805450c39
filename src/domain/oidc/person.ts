// Who somebody is here whom an OpenID Connect provider has named: the account that is linked, one without a link that may be linked by its
// verified address, or a new one (rules OI-5, OI-6). Refuses in words for people; writes nothing.
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { insertMember } from "#db/users/members.ts";
import { findAnyOidcLink, findOidcLink, insertOidcLink, isUnlinkedStill } from "#db/users/oidc-links.ts";
import { findUser, findUserByEmail, findUserByName, insertUser, type User } from "#db/users/users.ts";
import type { DomainContext } from "../context.ts";
import { userMade } from "../users/audit.ts";
import { defaultOrganization, PREBUILDS_USER_ID } from "../users/first-user.ts";
import { userCreatedNotices } from "../users/notices.ts";
import { isFreeName, toUsername } from "../users/usernames.ts";
import { followed } from "./follow.ts";
import { type Identity, type Provider, refusedSignIn } from "./identity.ts";

/** The user, and what has to be written for the sign-in to be theirs. */
export type Person = { readonly user: User; readonly statements: readonly Statement[]; readonly isNew: boolean };

export const personOf = async (ctx: DomainContext, provider: Provider, identity: Identity): Promise<Person> => {
  const { store } = ctx;
  const { issuer, sign_up } = provider.setting;
  const { subject, email } = identity;
  const link = await store.get(findOidcLink({ issuer, subject }));
  if (link) {
    const user = await store.get(findUser({ id: link.user_id }));
    if (!user) throw refusedSignIn("The account that this sign-in belongs to was deleted.");
    return { ...(await followed(ctx, provider, identity, { user: active(user), link })), isNew: false };
  }
  const known = await store.get(findUserByEmail({ email }));
  if (known) return linked(ctx, provider, identity, known);
  if (!sign_up) {
    throw refusedSignIn(
      "You have no account here yet.",
      "Ask an administrator to create one with your e-mail address.",
    );
  }
  return signedUp(ctx, provider, identity);
};

const active = (user: User): User => {
  if (user.status !== "suspended") return user;
  throw new AppError("unauthenticated", "This account is suspended. Ask an administrator to activate it.");
};

/**
 * An account with this address that no sign-in belongs to yet, where the operator lets this provider link accounts. An address alone never
 * opens an account that has a link: providers give addresses to other people, and not every provider is to be trusted with every account.
 */
const linked = async (
  ctx: DomainContext,
  { setting, name }: Provider,
  identity: Identity,
  user: User,
): Promise<Person> => {
  if (await ctx.store.get(findAnyOidcLink({ user_id: user.id }))) {
    throw refusedSignIn(
      "The account with your e-mail address belongs to another sign-in.",
      `If it is yours, sign in the way you did before. If ${name} gave you a new identity, ask an administrator to remove the old link.`,
    );
  }
  if (user.id === PREBUILDS_USER_ID || !["oidc", "password"].includes(user.login_type)) {
    throw refusedSignIn("The account with your e-mail address cannot be signed in to.");
  }
  if (!identity.isVerified) {
    throw refusedSignIn(
      "There is an account with your e-mail address.",
      `It is linked only when ${name} says that the address is verified. Ask an administrator for an invitation or for another address.`,
    );
  }
  if (setting.link_accounts !== true) {
    throw refusedSignIn(
      "There is an account with your e-mail address, and this provider may not link accounts.",
      user.login_type === "password"
        ? "Sign in with your password."
        : "Ask an administrator to set link_accounts for this provider.",
    );
  }
  active(user);
  const statements = [isUnlinkedStill({ user_id: user.id }), ...linkOf(ctx, setting.issuer, identity, user)];
  return { user, statements, isNew: false };
};

const linkOf = (
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
    audited({ now, action: "create", resource_type: "oidc_link", resource_id: user_id, target, after, user_id }),
  ];
};

const signedUp = async (
  ctx: DomainContext,
  { setting: { issuer }, name: provider }: Provider,
  identity: Identity,
): Promise<Person> => {
  const { email, name } = identity;
  const now = ctx.clock.now();
  const at = { created_at: now, updated_at: now };
  const username = await freeName(ctx, identity.username, email);
  const row = {
    id: uuid(),
    email,
    username,
    name,
    ...at,
    status: "active" as const,
    login_type: "oidc" as const,
    roles: [] as string[],
  };
  const user: User = {
    avatar_url: "",
    password_hash: "",
    theme_preference: "",
    terminal_font: "",
    quiet_hours_schedule: "",
    task_notification_alert_dismissed: false,
    has_ai_seat: false,
    last_seen_at: null,
    deleted: false,
    second_factor_required: false,
    github_com_user_id: null,
    ...row,
  };
  const { id: organization_id } = await defaultOrganization(ctx.store);
  return {
    user,
    isNew: true,
    statements: [
      insertUser(row),
      insertMember({ organization_id, user_id: row.id, roles: [], ...at }),
      userMade(row, now),
      ...linkOf(ctx, issuer, identity, row),
      ...(await userCreatedNotices({ store: ctx.store, now }, row, { name: `a sign-in at ${provider}` })),
    ],
  };
};

/** A name as ours are, made of what the provider calls the person, that nobody has: `ann`, else `ann-2`, and so on. */
const freeName = async (ctx: DomainContext, claim: string, email: string): Promise<string> => {
  const base = toUsername((claim || email).split("@")[0] ?? "") || toUsername(email.split("@")[0] ?? "") || "user";
  for (let i = 1; i < 100; i++) {
    const name = i === 1 ? base : `${base.slice(0, 28)}-${i}`;
    if (isFreeName(name) && !(await ctx.store.get(findUserByName({ username: name })))) return name;
  }
  return `${base.slice(0, 23)}-${uuid().slice(0, 8)}`;
};
