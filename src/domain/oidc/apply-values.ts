// Applies a provider's current values to the user: always the email address; username and name only if they have changed at the provider
// since the last sign-in, so that a name chosen in Slipway is kept until then (rule OI-10). Values that another account uses are skipped,
// and the user is notified.
import { log } from "#base/log.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import { holdUsername } from "#db/users/former-usernames.ts";
import { type OidcLink, updateOidcLink } from "#db/users/oidc-links.ts";
import { findUserByEmail, findUserByName, type User, updateUser } from "#db/users/users.ts";
import type { DomainContext } from "../context.ts";
import { auditUserChanged } from "../users/audit.ts";
import { isHeldName } from "../users/free-username.ts";
import { isFreeName, toUsername } from "../users/usernames.ts";
import type { Identity, Provider } from "./identity.ts";

type ApplyResult = { readonly user: User; readonly statements: readonly Statement[] };
type Patch = { email?: string; username?: string; name?: string };

/** Returns the user with the provider's current values. A user with a password keeps all values. */
export const applyProviderValues = async (
  ctx: DomainContext,
  provider: Provider,
  identity: Identity,
  { user, link }: { user: User; link: OidcLink },
): Promise<ApplyResult> => {
  const { issuer, subject, username: before, name: nameBefore } = link;
  const { email, username, name } = identity;
  const linkUpdates =
    before === username && nameBefore === name ? [] : [updateOidcLink({ issuer, subject, username, name })];
  if (user.login_type !== "oidc") return { user, statements: linkUpdates };
  const patch: Patch = {};
  const notices: Statement[] = [];
  if (email !== user.email) {
    const other = await ctx.store.get(findUserByEmail({ email }));
    if (other && other.id !== user.id)
      notices.push(notifyTaken(ctx, provider, user, { what: "email address", value: email }));
    else patch.email = email;
  }
  const newUsername = toUsername(username.split("@")[0] ?? "");
  if (before !== null && username !== before && newUsername !== "" && newUsername !== user.username) {
    const other = await ctx.store.get(findUserByName({ username: newUsername }));
    const isFree =
      isFreeName(newUsername) && (!other || other.id === user.id) && !(await isHeldName(ctx, newUsername, user.id));
    if (isFree) patch.username = newUsername;
    else notices.push(notifyTaken(ctx, provider, user, { what: "username", value: newUsername }));
  }
  if (nameBefore !== null && name !== nameBefore && name !== "" && name !== user.name) patch.name = name;
  if (Object.keys(patch).length === 0) return { user, statements: [...linkUpdates, ...notices] };
  const now = ctx.clock.now();
  return {
    user: { ...user, ...patch },
    statements: [
      updateUser(user.id, { ...patch, updated_at: now }),
      ...(patch.username === undefined ? [] : holdUsername(user, now)),
      auditUserChanged(user, patch, now),
      ...linkUpdates,
      ...notices,
    ],
  };
};

/** Notifies the user, once per value, that another account uses the provider's value. */
const notifyTaken = (
  ctx: DomainContext,
  { name: provider }: Provider,
  user: User,
  { what, value }: { what: "email address" | "username"; value: string },
): Statement => {
  const current = what === "username" ? user.username : user.email;
  log("http").warn("{provider} gives {username} the {what} of another account", {
    provider,
    username: user.username,
    what,
  });
  return insertNotification({
    now: ctx.clock.now(),
    user_id: user.id,
    // The name of the kind means that the current value is kept.
    kind: "provider_change_kept",
    values: { provider, what, value, kept: current },
    path: "/account",
    dedupe: `provider_change_kept:${what}:${value}`,
  });
};
