// Creates the session of a sign-in over HTTP: its token, and the cookie for browsers.
import type { Statement } from "#db/engine/sql.ts";
import type { User } from "#db/users/users.ts";
import { stopForbiddenLocal } from "#domain/builds/local-limits.ts";
import { endKeysOfFormerOwner } from "#domain/users/keys-change.ts";
import { type NewSession, type ProvenFactors, startSession } from "#domain/users/sign-in.ts";
import type { ApiContext } from "../context.ts";
import { formatCookieAttributes, SESSION_COOKIE, toHostCookie } from "../http/cookies.ts";
import { toSeen } from "../http/identify.ts";

/** The maximum lifetime browsers allow; the session's actual expiry is enforced on the server. */
const COOKIE_TTL_SECONDS = 30 * 86_400;

/** Returns the Set-Cookie header; an empty token deletes the cookie. */
export const makeCookie = (ctx: ApiContext, token: string): string =>
  `${toHostCookie(SESSION_COOKIE, ctx.accessUrl)}=${token}; ${formatCookieAttributes(ctx.accessUrl, token === "" ? 0 : COOKIE_TTL_SECONDS)}`;

type SessionOptions = Pick<NewSession, "login_type" | "keeps"> & {
  /** Whether `guards` revoke the user's other keys. */
  readonly revokesKeys?: boolean;
};

/** Creates a session for a sign-in by this request. `guards` come first in the batch; see `startSession` for its errors. */
export const openSession = async (
  ctx: ApiContext,
  user: User,
  request: Request,
  provenFactors: ProvenFactors,
  guards: readonly Statement[],
  { login_type = "password", keeps, revokesKeys = false }: SessionOptions = {},
): Promise<{ token: string; cookie: string }> => {
  const seen = toSeen(request, ctx.addresses);
  const token = await startSession(ctx, user, { seen, proved: provenFactors, guards, login_type, keeps });
  if (revokesKeys) ctx.topics.publish("key_gone", user.id, {});
  if (login_type === "oidc") {
    // The batch may have changed the user's access.
    ctx.topics.publish("access_changed", user.id, {});
    ctx.topics.publish("shown_changed", user.id, {});
    ctx.topics.publish("notified", user.id, {});
    await endKeysOfFormerOwner(ctx, user.id);
    await stopForbiddenLocal(ctx, { owner_id: user.id });
  }
  return { token, cookie: makeCookie(ctx, token) };
};
