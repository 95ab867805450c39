// Transfers a sign-in to an app's host, which never receives the session cookie. The URL contains an encrypted key, which is valid once,
// for one minute and for that host. There it is exchanged for a cookie that works only there (facts/platform 8.4; rules AX-11 to AX-13).
import { AppError } from "#base/errors.ts";
import { keyId, keySecret } from "#base/ids.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { isAllowedFrom } from "#domain/users/allowed-addresses.ts";
import { listScopes } from "#domain/users/keys.ts";
import { startAppSession } from "#domain/users/sign-in.ts";
import { hasScope } from "#schema/users/scopes.ts";
import type { ApiContext } from "../context.ts";
import type { Identity, UserCaller } from "../http/caller.ts";
import { APP_COOKIE, formatCookieAttributes, readCookie, toHostCookie } from "../http/cookies.ts";
import { type CallerDeps, identify } from "../http/identify.ts";
import { API_KEY_FORMAT } from "./headers.ts";

/** The query parameter that carries the encrypted key. */
export const KEY_PARAMETER = "service_app_key";
const KEY_TTL_MS = 60_000;
const COOKIE_TTL_SECONDS = 30 * 86_400;

type Offer = { id: string; secret: string; user_id: string; parent: string; until: number };
type Session = { token: string; parent: string };

const START_SCOPE = "workspace:start";

/** Wraps a caller who sent a session or API key directly. */
export const toAppCaller = (caller: UserCaller): AppCaller => ({
  caller,
  mayStart: hasScope(caller.scopes, START_SCOPE),
});

/** The person signed in at an app's host. */
export type AppCaller = {
  readonly caller: UserCaller;
  /** The sign-in this session was derived from, if any. */
  readonly parent?: string;
  /** Whether that sign-in, or the API key itself, may start workspaces. */
  readonly mayStart: boolean;
};

export class HandOver {
  readonly #ctx: ApiContext;
  /** IDs of recently exchanged keys, with the time at which each can be forgotten. */
  readonly #usedKeys = new Map<string, number>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** Returns the encrypted key for this host. It becomes a session key only when it is exchanged. */
  offer(caller: UserCaller, host: string): string {
    const until = this.#ctx.clock.now() + KEY_TTL_MS;
    const offer: Offer = { id: keyId(), secret: keySecret(), user_id: caller.user_id, parent: caller.key_id, until };
    return this.#ctx.encryption.seal(JSON.stringify(offer), `app_key:${host}`);
  }

  /** Returns the Set-Cookie header for an offer. Throws 400 when it was already used, has expired, or was made for another host. */
  async exchange(sealed: string, host: string): Promise<string> {
    const { store, clock, encryption, accessUrl } = this.#ctx;
    const offer = this.#open<Offer>(sealed, `app_key:${host}`);
    const now = clock.now();
    for (const [id, forgetAt] of this.#usedKeys) if (forgetAt <= now) this.#usedKeys.delete(id);
    if (!offer || offer.until <= now || this.#usedKeys.has(offer.id)) throw makeExpiredLinkError();
    this.#usedKeys.set(offer.id, offer.until);
    const parent = await store.get(findKeyWithUser({ id: offer.parent }));
    if (!parent) throw makeExpiredLinkError();
    const { id, secret, user_id } = offer;
    const token = await startAppSession(this.#ctx, {
      id,
      secret,
      user_id,
      parent_id: offer.parent,
      workspace_id: parent.workspace_id ?? undefined,
      lifetime_seconds: parent.lifetime_seconds,
    });
    if (token === undefined) throw makeExpiredLinkError();
    const session: Session = { token, parent: offer.parent };
    const value = encryption.seal(JSON.stringify(session), `app_session:${host}`);
    return `${toHostCookie(APP_COOKIE, accessUrl)}=${value}; ${formatCookieAttributes(accessUrl, COOKIE_TTL_SECONDS)}`;
  }

  /** Returns the person the cookie of this host belongs to; undefined once the sign-in it was derived from has ended. */
  async findCaller(request: Request, host: string, deps: CallerDeps): Promise<AppCaller | undefined> {
    const sealed = readCookie(request, toHostCookie(APP_COOKIE, this.#ctx.accessUrl));
    const session = this.#open<Session>(sealed ?? "", `app_session:${host}`);
    if (!session) return undefined;
    const parent = await this.#ctx.store.get(findKeyWithUser({ id: session.parent }));
    if (!parent || parent.expires_at <= this.#ctx.clock.now()) return undefined;
    const isAllowed = isAllowedFrom(parent.allowed_addresses, this.#ctx.addresses.of(request));
    if (!isAllowed || !hasScope(listScopes(parent), "workspace:application_connect")) return undefined;
    const caller = await loadPerson(session.token, request, deps);
    return caller && { caller, parent: session.parent, mayStart: hasScope(listScopes(parent), START_SCOPE) };
  }

  #open<T>(sealed: string, context: string): T | undefined {
    if (sealed === "") return undefined;
    try {
      return JSON.parse(this.#ctx.encryption.open(sealed, context)) as T;
    } catch {
      return undefined;
    }
  }
}

/** Returns the user of an API key; undefined if the key is invalid, not a user's, or lacks the scope for apps. */
export const loadPerson = async (
  token: string,
  request: Request,
  deps: CallerDeps,
): Promise<UserCaller | undefined> => {
  if (!API_KEY_FORMAT.test(token)) return undefined;
  const identity: Identity = await identify({ token, source: "header", compat: false }, request, deps);
  if (identity instanceof AppError || identity.kind !== "user") return undefined;
  return hasScope(identity.scopes, "workspace:application_connect") ? identity : undefined;
};

const makeExpiredLinkError = (): AppError =>
  new AppError("invalid", "This sign-in link was already used or has expired.", { detail: "Open the app again." });
