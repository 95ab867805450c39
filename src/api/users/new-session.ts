// The session that a sign-in makes: its key, the cookie that carries it for browsers, and what the audit log tells of it.

import type { Statement } from "#db/engine/sql.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { type ApiKey, updateKey } from "#db/users/api-keys.ts";
import { touchUser, type User } from "#db/users/users.ts";
import { wokenUp } from "#domain/users/audit.ts";
import { LOGIN_SECONDS, newKey } from "#domain/users/keys.ts";
import type { ApiContext } from "../context.ts";
import { SESSION_COOKIE, seenOf } from "../http/identify.ts";
import { rememberedAddress } from "./known-address.ts";

/** The cookie lives as long as browsers keep it; how long its key counts is decided here, not there. */
const COOKIE_SECONDS = 30 * 86_400;

/** The Set-Cookie header; the empty token takes the cookie away. */
export const cookieOf = (ctx: ApiContext, token: string): string =>
  `${SESSION_COOKIE}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${token === "" ? 0 : COOKIE_SECONDS}${
    ctx.accessUrl.protocol === "https:" ? "; Secure" : ""
  }`;

/** A sign-in of somebody we know, or a try of one (rule AU-6). */
export const signInEntry = ({ id, username }: User, now: number, status_code: number): Statement =>
  audited({ now, action: "login", resource_type: "api_key", target: username, user_id: id, status_code });

/** What the person has proved just now. */
export type Proved = { readonly password: boolean; readonly factor: boolean };

/** When a session's user proved what, as columns of its key. */
export const provedNow = ({ password, factor }: Proved, now: number): Partial<ApiKey> => ({
  ...(password ? { password_proved_at: now } : {}),
  ...(factor ? { factor_proved_at: now } : {}),
});

/** Notes a new proof of a session there is. */
export const noteProof = (key_id: string, proved: Proved, now: number): Statement =>
  updateKey(key_id, provedNow(proved, now));

/** Makes the session of a sign-in by this request. `guards` come first in the batch; throws CommitError `stale` when one of them refuses. */
export const openSession = async (
  ctx: ApiContext,
  user: User,
  request: Request,
  proved: Proved,
  guards: readonly Statement[],
  login_type: "password" | "oidc" = "password",
): Promise<{ token: string; cookie: string }> => {
  const now = ctx.clock.now();
  const seen = seenOf(request, ctx.addresses);
  const { token, statement } = newKey({
    ...{ user_id: user.id, login_type, lifetime_seconds: LOGIN_SECONDS, seen, now },
    proved: provedNow(proved, now),
  });
  await ctx.store.commit([
    ...guards,
    statement,
    touchUser({ id: user.id, now }),
    ...rememberedAddress(user.id, seen.ip_address, now),
    signInEntry(user, now, 201),
    ...wokenUp(user, now),
  ]);
  return { token, cookie: cookieOf(ctx, token) };
};
