// The cookie with which a browser that returns from a provider shows that it began the sign-in: sealed, for ten minutes, for one
// provider (rule OI-3).
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { AppError } from "#base/errors.ts";
import { providerPath } from "#domain/oidc/providers.ts";
import type { Checks } from "#src/authentication/oidc.ts";
import type { ApiContext } from "../context.ts";
import { cookie } from "../http/identify.ts";

const STATE_COOKIE = "service_oidc_state";
/** As long as a person may take to sign in at the provider. */
const LIFE_S = 600;

export type State = {
  readonly checks: Checks;
  readonly back: string;
  readonly until: number;
  /** Who only tries the provider: nobody is signed in. */
  readonly trial_of?: string;
  /** The hash of the invitation's token that the person comes in with. */
  readonly invitation?: string;
};

const toSealContext = (id: string): string => `oidc_state:${id}`;

/** The Set-Cookie header; the empty value takes the cookie away. */
export const stateCookie = ({ accessUrl }: ApiContext, id: string, value: string): string =>
  `${STATE_COOKIE}=${value}; Path=${providerPath(id)}; HttpOnly; SameSite=Lax; Max-Age=${value === "" ? 0 : LIFE_S}${
    accessUrl.protocol === "https:" ? "; Secure" : ""
  }`;

export const sealState = (ctx: ApiContext, id: string, state: Omit<State, "until">): string => {
  const until = ctx.clock.now() + LIFE_S * 1000;
  return ctx.encryption.seal(JSON.stringify({ ...state, until } satisfies State), toSealContext(id));
};

const stateIn = (encryption: Encryption, id: string, request: Request): State | undefined => {
  const sealed = cookie(request.headers.get("cookie") ?? "", STATE_COOKIE);
  try {
    return sealed === undefined ? undefined : (JSON.parse(encryption.open(sealed, toSealContext(id))) as State);
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
};

/** What this browser began. 401 when it began nothing here, or too long ago. */
export const begunHere = (ctx: ApiContext, id: string, request: Request): State => {
  const state = stateIn(ctx.encryption, id, request);
  if (state && state.until > ctx.clock.now()) return state;
  throw new AppError(
    "unauthenticated",
    "This sign-in was not started in this browser, or has expired. Start it again.",
  );
};
