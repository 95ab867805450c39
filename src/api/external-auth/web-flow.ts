// State of a sign-in at a provider. It travels through the browser encrypted: the user, their session, the provider with its URLs, and the
// PKCE verifier. Nothing is stored here, so a restart does not break a sign-in (rule EA-5).
import type { Clock } from "#base/clock.ts";
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { invalid } from "#base/errors.ts";
import { linkToken, sha256 } from "#base/ids.ts";
import type { Provider } from "#src/git/provider.ts";
import type { UserCaller } from "../http/caller.ts";

type State = {
  readonly user_id: string;
  readonly key_id: string;
  readonly verifier: string;
  readonly until: number;
  /** Hash of the client ID and of the URLs to which the user and the code are sent. */
  readonly provider_fingerprint: string;
};

/** How long a person may take to sign in at the provider. */
const STATE_TTL_MS = 600_000;

type Deps = { readonly clock: Clock; readonly encryption: Encryption };

const toSealContext = (provider_id: string): string => `external_auth_state:${provider_id}`;

const fingerprintProvider = ({ client_id, auth_url, token_url }: Provider): string =>
  sha256(JSON.stringify([client_id, auth_url, token_url]));

/** Creates a new state and its verifier. */
export const createState = ({ clock, encryption }: Deps, caller: UserCaller, provider: Provider) => {
  const verifier = linkToken();
  const { user_id, key_id } = caller;
  const state: State = {
    user_id,
    key_id,
    verifier,
    until: clock.now() + STATE_TTL_MS,
    provider_fingerprint: fingerprintProvider(provider),
  };
  return { verifier, state: encryption.seal(JSON.stringify(state), toSealContext(provider.id)) };
};

/**
 * Returns the verifier in a state. Rejects with 400 unless this session started it at this provider less than ten minutes ago, and the
 * provider's URLs are still the same.
 */
export const openVerifier = (
  { clock, encryption }: Deps,
  caller: UserCaller,
  provider: Provider,
  sealed: string,
): string => {
  const state = openJson(encryption, sealed, toSealContext(provider.id)) as State | undefined;
  const isFromSession =
    state?.user_id === caller.user_id && state.key_id === caller.key_id && state.until > clock.now();
  if (!state || !isFromSession) {
    throw invalid("This sign-in was not started in this session, or has expired. Start it again.");
  }
  if (state.provider_fingerprint !== fingerprintProvider(provider)) {
    throw invalid("The settings of this sign-in have changed since it was started. Start it again.");
  }
  return state.verifier;
};

const toDeviceContext = (provider_id: string, user_id: string): string =>
  `external_auth_device:${provider_id}:${user_id}`;

/** Encrypts the provider's device code so that only this user can request its token. */
export const sealDevice = ({ encryption }: Deps, caller: UserCaller, provider_id: string, code: string): string =>
  encryption.seal(JSON.stringify(code), toDeviceContext(provider_id, caller.user_id));

/** Returns the provider's device code. Rejects with 400 if it is not this user's. */
export const openDevice = ({ encryption }: Deps, caller: UserCaller, provider_id: string, sealed: string): string => {
  const code = openJson(encryption, sealed, toDeviceContext(provider_id, caller.user_id));
  if (typeof code === "string") return code;
  throw invalid("Validation failed.", [{ field: "device_code", detail: "was not issued to you by this server" }]);
};

const openJson = (encryption: Encryption, sealed: string, context: string): unknown => {
  try {
    return JSON.parse(encryption.open(sealed, context));
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
};
