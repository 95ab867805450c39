// The cookie that proves that a browser returning from a provider started the sign-in: encrypted, valid for ten minutes and for one
// provider (rule OI-3).
import { UnsealError } from "#base/encryption.ts";
import { AppError } from "#base/errors.ts";
import type { Checks } from "#src/authentication/oidc.ts";
import type { ApiContext } from "../context.ts";
import { formatCookieAttributes, readCookie, STATE_COOKIE, toHostCookie } from "../http/cookies.ts";

/** How long a person may take to sign in at the provider. */
const STATE_TTL_S = 600;

export type State = {
  readonly checks: Checks;
  readonly back: string;
  readonly until: number;
  /** The owner who is only testing the provider; no session is created. */
  readonly trial_of?: string;
  /** The token hash of the invitation being accepted. */
  readonly invitation?: string;
};

const toSealContext = (id: string): string => `oidc_state:${id}`;

/** Returns the Set-Cookie header; an empty value deletes the cookie. */
export const formatStateCookie = ({ accessUrl }: ApiContext, id: string, value: string): string =>
  `${toHostCookie(STATE_COOKIE + id, accessUrl)}=${value}; ${formatCookieAttributes(accessUrl, value === "" ? 0 : STATE_TTL_S)}`;

export const sealState = (ctx: ApiContext, id: string, state: Omit<State, "until">): string => {
  const until = ctx.clock.now() + STATE_TTL_S * 1000;
  return ctx.encryption.seal(JSON.stringify({ ...state, until } satisfies State), toSealContext(id));
};

const readState = ({ encryption, accessUrl }: ApiContext, id: string, request: Request): State | undefined => {
  const sealed = readCookie(request, toHostCookie(STATE_COOKIE + id, accessUrl));
  try {
    return sealed === undefined ? undefined : (JSON.parse(encryption.open(sealed, toSealContext(id))) as State);
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
};

/** Returns the sign-in this browser started. Rejects with 401 when none exists or it has expired. */
export const requireStartedSignIn = (ctx: ApiContext, id: string, request: Request): State => {
  const state = readState(ctx, id, request);
  if (state && state.until > ctx.clock.now()) return state;
  throw new AppError(
    "unauthenticated",
    "This sign-in was not started in this browser, or has expired. Start it again.",
  );
};
