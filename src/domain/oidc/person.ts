// Who somebody is here whom an OpenID Connect provider has named: the account that is linked, one that may be linked by its verified
// address, or a new one (rules OI-4 to OI-6). Refuses in words for people; writes nothing.
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { insertMember } from "#db/users/members.ts";
import { findOidcLink, insertOidcLink } from "#db/users/oidc-links.ts";
import { findUser, findUserByEmail, findUserByName, insertUser, type User } from "#db/users/users.ts";
import type { Claims, OidcClient } from "#src/authentication/oidc.ts";
import type { DomainContext } from "../context.ts";
import { userMade } from "../users/audit.ts";
import { defaultOrganization, PREBUILDS_USER_ID } from "../users/first-user.ts";
import { checkUsername } from "../users/usernames.ts";

/** The user, and what has to be written for the sign-in to be theirs. */
export type Person = { readonly user: User; readonly statements: readonly Statement[]; readonly isNew: boolean };

const refused = (message: string, detail = ""): AppError => new AppError("forbidden", message, { detail });

export const personOf = async (ctx: DomainContext, client: OidcClient, claims: Claims): Promise<Person> => {
  const { store } = ctx;
  const { issuer } = client.setting;
  const email = verifiedEmail(client, claims);
  const link = await store.get(findOidcLink({ issuer, subject: claims.sub }));
  if (link) {
    const user = await store.get(findUser({ id: link.user_id }));
    if (!user) throw refused("The account that this sign-in belongs to is gone.");
    return { user: active(user), statements: [], isNew: false };
  }
  const known = await store.get(findUserByEmail({ email }));
  if (known) return linked(ctx, client, claims, known);
  if (!client.setting.sign_up) {
    throw refused(
      "There is no account for you here yet.",
      "Ask an administrator to make one with your e-mail address.",
    );
  }
  return signedUp(ctx, client, claims, email);
};

const active = (user: User): User => {
  if (user.status !== "suspended") return user;
  throw new AppError("unauthenticated", "This account is suspended. Ask an administrator to activate it.");
};

/** 403 unless the provider vouches for an address that may come in. */
const verifiedEmail = ({ setting, name }: OidcClient, { email, email_verified }: Claims): string => {
  if (typeof email !== "string" || !/^[^@\s]+@[^@\s]+$/.test(email) || email.length > 254) {
    throw refused(`${name} did not tell your e-mail address.`);
  }
  // Some providers write it as text.
  if (email_verified !== true && email_verified !== "true") {
    throw refused(`Your e-mail address is not verified at ${name}.`, "Verify it there, then sign in again.");
  }
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  const { email_domains } = setting;
  if (email_domains && !email_domains.some((one) => one.toLowerCase().replace(/^@/, "") === domain)) {
    throw refused("E-mail addresses of this domain may not sign in here.");
  }
  return email;
};

/** An account with this address: made for this kind of sign-in, or linked where the operator allows it. */
const linked = (ctx: DomainContext, { setting }: OidcClient, { sub }: Claims, user: User): Person => {
  const mayLink = user.login_type === "oidc" || (user.login_type === "password" && setting.link_accounts === true);
  if (!mayLink || user.id === PREBUILDS_USER_ID) {
    throw refused("There is an account with your e-mail address that signs in in another way.");
  }
  active(user);
  return { user, statements: [...linkOf(ctx, setting.issuer, sub, user)], isNew: false };
};

const linkOf = (
  ctx: DomainContext,
  issuer: string,
  subject: string,
  user: Pick<User, "id" | "username">,
): Statement[] => {
  const now = ctx.clock.now();
  const { id: user_id, username: target } = user;
  const after = { issuer, user_id };
  return [
    insertOidcLink({ issuer, subject, user_id, created_at: now }),
    audited({ now, action: "create", resource_type: "oidc_link", resource_id: user_id, target, after, user_id }),
  ];
};

const signedUp = async (ctx: DomainContext, client: OidcClient, claims: Claims, email: string): Promise<Person> => {
  const now = ctx.clock.now();
  const at = { created_at: now, updated_at: now };
  const username = await freeName(ctx, claims[client.setting.username_claim ?? "preferred_username"], email);
  const name = typeof claims.name === "string" ? claims.name.trim().slice(0, 128) : "";
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
      ...linkOf(ctx, client.setting.issuer, claims.sub, row),
    ],
  };
};

/** A name as ours are, made of what the provider calls the person, that nobody has: `ann`, else `ann-2`, and so on. */
const freeName = async (ctx: DomainContext, claim: unknown, email: string): Promise<string> => {
  const said = typeof claim === "string" && claim !== "" ? claim : email;
  const base = nameOf(said.split("@")[0] ?? "") || nameOf(email.split("@")[0] ?? "") || "user";
  for (let i = 1; i < 100; i++) {
    const name = i === 1 ? base : `${base.slice(0, 28)}-${i}`;
    if (isAllowed(name) && !(await ctx.store.get(findUserByName({ username: name })))) return name;
  }
  return `${base.slice(0, 23)}-${uuid().slice(0, 8)}`;
};

const nameOf = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[^a-zA-Z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 28)
    .replace(/-+$/, "");

const isAllowed = (name: string): boolean => {
  try {
    checkUsername(name);
    return true;
  } catch {
    return false;
  }
};
