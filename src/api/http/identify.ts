// Finds the credential of a request and the caller it belongs to (facts/platform 8.1 and 8.2). Rejects nothing itself: the result can be
// the 401 for a route that requires a caller.
import type { Clock } from "#base/clock.ts";
import { toRfc3339 } from "#base/clock.ts";
import type { SecondFactorPolicy } from "#base/config/sign-in-settings.ts";
import type { Encryption } from "#base/encryption.ts";
import { AppError, forbidden } from "#base/errors.ts";
import { isSameDigest, isUuid, sha256 } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { needsFactor } from "#domain/factors/policy.ts";
import { isAllowedFrom } from "#domain/users/allowed-addresses.ts";
import { GRANTED, listScopes } from "#domain/users/keys.ts";
import { type KeyClient, noteKeyUse } from "#domain/users/sign-in.ts";
import { hasScope } from "#schema/users/scopes.ts";
import type { Addresses } from "./address.ts";
import type { AgentTokens } from "./agent-tokens.ts";
import { EnrollmentRequired, type Identity, type UserCaller } from "./caller.ts";
import { readCookies, SESSION_COOKIE, toHostCookie, UPSTREAM_COOKIE } from "./cookies.ts";
import { findTicket, openTicket, TICKET_SCOPE } from "./terminal-ticket.ts";
import type { CachedKey, UserKeys } from "./user-keys.ts";

export const SESSION_HEADER = "Service-Session-Token";
const UPSTREAM_HEADER = "Coder-Session-Token";

/** Minimum interval between writes of `last_used` and of a session's expiry. A shorter one applies when the address has changed. */
const TOUCH_INTERVAL_MS = 3_600_000;
const MOVED_TOUCH_INTERVAL_MS = 5 * 60_000;

export const toSeen = (request: Request, addresses: Pick<Addresses, "of">): KeyClient => ({
  ip_address: addresses.of(request),
  user_agent: (request.headers.get("user-agent") ?? "").slice(0, 256),
});

export type Credential = {
  token: string;
  source: "cookie" | "query" | "header" | "ticket";
  compat: boolean;
  /** The request has two session cookies. One of them may have been set by an app's page, so neither is used. */
  ambiguous?: true;
};

/**
 * Returns the session in a request's cookies. On an https access URL, browsers are signed in by the `__Host-` cookie only: any page of the
 * domain can set the bare names, which are for programs that send a cookie themselves.
 */
export const findSessionCookie = ({ headers }: Request, accessUrl: URL): Credential | undefined => {
  const cookies = headers.get("cookie");
  if (!cookies) return undefined;
  const compat = isFromCli(headers);
  const hostName = toHostCookie(SESSION_COOKIE, accessUrl);
  const isBrowser = headers.has("sec-fetch-site") || headers.has("origin");
  const names = hostName !== SESSION_COOKIE && isBrowser ? [hostName] : [hostName, SESSION_COOKIE, UPSTREAM_COOKIE];
  for (const name of names) {
    const [token, other] = readCookies(cookies, name);
    if (token === undefined) continue;
    const credential: Credential = { token, source: "cookie", compat: compat || name === UPSTREAM_COOKIE };
    return other === undefined ? credential : { ...credential, token: "", ambiguous: true };
  }
  return undefined;
};

const isFromCli = (headers: Headers): boolean => headers.get("user-agent")?.startsWith("coder-cli/") ?? false;

/** Returns the first credential in the order cookie, query, header, bearer, access_token; a terminal ticket takes precedence over all. */
export const findCredential = (request: Request, accessUrl: URL): Credential | undefined => {
  const { headers } = request;
  const fromCli = isFromCli(headers);
  const queryStart = request.url.indexOf("?");
  const query = queryStart < 0 ? undefined : new URLSearchParams(request.url.slice(queryStart + 1));
  const ticket = query && findTicket(request.url, query);
  if (ticket !== undefined) return { token: ticket, source: "ticket", compat: fromCli };
  const session = findSessionCookie(request, accessUrl);
  if (session) return session;
  const queryToken = query?.get(SESSION_COOKIE);
  if (queryToken) return { token: queryToken, source: "query", compat: fromCli };
  const upstreamQueryToken = query?.get(UPSTREAM_COOKIE);
  if (upstreamQueryToken) return { token: upstreamQueryToken, source: "query", compat: true };
  const header = headers.get(SESSION_HEADER);
  if (header) return { token: header, source: "header", compat: fromCli };
  const upstreamHeader = headers.get(UPSTREAM_HEADER);
  if (upstreamHeader) return { token: upstreamHeader, source: "header", compat: true };
  const authorization = headers.get("authorization");
  if (authorization && /^bearer /i.test(authorization)) {
    return { token: authorization.slice(7).trim(), source: "header", compat: fromCli };
  }
  const accessToken = query?.get("access_token");
  return accessToken ? { token: accessToken, source: "query", compat: fromCli } : undefined;
};

/** `reason` is for programs. */
const makeSignedOutError = (detail: string, reason?: "revoked"): AppError =>
  new AppError("unauthenticated", "You are signed out or your session has expired. Please sign in again.", {
    detail,
    ...(reason && { reason }),
  });

const NO_CREDENTIAL = makeSignedOutError("A session token must be sent in the header, a cookie or a query parameter.");

const TWO_SESSIONS = makeSignedOutError(
  "The request has two different session cookies. Delete this site's cookies in the browser, then sign in again.",
);

/** Dependencies for looking up callers. */
export type CallerDeps = {
  readonly addresses: Pick<Addresses, "of">;
  readonly store: Store;
  readonly clock: Clock;
  readonly agents: AgentTokens;
  readonly keys: UserKeys;
  readonly policy: SecondFactorPolicy;
  readonly encryption: Encryption;
};

/** Returns the sender of a request, or the error for routes that require one: 401, or 403 when the key is not valid from this address. */
export const identify = async (
  credential: Credential | undefined,
  request: Request,
  deps: CallerDeps,
): Promise<Identity> => {
  if (!credential) return NO_CREDENTIAL;
  if (credential.ambiguous) return TWO_SESSIONS;
  const { token, source, compat } = credential;
  if (source === "ticket") return identifyTicket(credential, request, deps);
  const { agents, keys } = deps;
  if (isUuid(token)) {
    const agent = await agents.find(sha256(token.toLowerCase()));
    return agent
      ? { kind: "agent", ...agent, compat }
      : makeSignedOutError("The agent token is invalid or its build is not the latest.");
  }
  const match = /^([A-Za-z0-9]{10})-([A-Za-z0-9]{22})$/.exec(token);
  if (!match) return makeSignedOutError("The format of the session token is invalid.");
  const cachedKey = await keys.find(match[1] as string);
  if (!cachedKey || cachedKey.key.deleted) return makeSignedOutError("The API key is invalid.", "revoked");
  if (!isSameDigest(sha256(match[2] as string), cachedKey.key.secret_hash)) {
    return makeSignedOutError("The secret of the API key is invalid.");
  }
  // URLs are kept in logs and histories (RFC 9700 4.3.2), and editors can send headers.
  if (source === "query" && cachedKey.key.login_type === GRANTED) {
    return makeSignedOutError("An application's token must be sent in a header, not in a URL.");
  }
  return toCaller(cachedKey, listScopes(cachedKey.key), { compat, request, deps });
};

/** Identifies the holder of a ticket for one terminal, valid as long as the session that created the ticket. */
const identifyTicket = async ({ token, compat }: Credential, request: Request, deps: CallerDeps): Promise<Identity> => {
  const ticket = openTicket(deps, token, request.url);
  const cachedKey = ticket && (await deps.keys.find(ticket.key_id));
  if (!cachedKey || cachedKey.key.deleted || cachedKey.key.user_id !== ticket.user_id) {
    return makeSignedOutError("The ticket is not valid for this terminal or has expired.");
  }
  const scopes = hasScope(listScopes(cachedKey.key), TICKET_SCOPE) ? [TICKET_SCOPE] : [];
  return toCaller(cachedKey, scopes, { compat, request, deps });
};

type SentRequest = { readonly compat: boolean; readonly request: Request; readonly deps: CallerDeps };

/** Returns the caller for a key, unless the key is no longer valid or not valid from this address. */
const toCaller = (
  { key, memberships }: CachedKey,
  scopes: readonly string[],
  { compat, request, deps: { store, clock, policy, addresses } }: SentRequest,
): Identity => {
  const now = clock.now();
  if (key.expires_at <= now) return makeSignedOutError(`The API key expired at ${toRfc3339(key.expires_at)}.`);
  if (key.status === "suspended") return makeSignedOutError("The user is not active: suspended.", "revoked");
  if (key.allowed_addresses.length > 0 && !isAllowedFrom(key.allowed_addresses, addresses.of(request))) {
    return forbidden(`This token is not valid from ${addresses.of(request) || "an unknown address"}.`);
  }
  // The first use of a token is recorded immediately, so that "never used" is always true.
  const isFirstUse = key.login_type === "token" && key.last_used === key.created_at && now > key.created_at;
  const unusedMs = now - key.last_used;
  const isMoved = unusedMs >= MOVED_TOUCH_INTERVAL_MS && key.ip_address !== addresses.of(request);
  if (isFirstUse || unusedMs >= TOUCH_INTERVAL_MS || key.status === "dormant" || isMoved) {
    noteKeyUse({ store }, key, now, toSeen(request, addresses));
  }
  const caller: UserCaller = {
    kind: "user",
    user_id: key.user_id,
    username: key.username,
    roles: key.roles,
    ...memberships,
    key_id: key.key_id,
    scopes,
    is_application: key.login_type === GRANTED,
    only_workspace: key.workspace_id ?? undefined,
    parent_key_id: key.parent_id ?? undefined,
    compat,
  };
  const user = { ...key, login_type: key.user_login_type, organizations: memberships.organizations };
  return !key.has_second_factor && needsFactor(policy, user) ? new EnrollmentRequired(caller) : caller;
};
