// Verifies Google Cloud instance identities: a JSON Web Token signed with one of the cloud's keys, which are read from files
// (facts/platform 8.3). A machine sends such tokens to other services too, so only tokens for this server are accepted.
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import { getText, IdentityError, type IdentityFiles } from "./identity.ts";

const ISSUERS = ["https://accounts.google.com", "accounts.google.com"];
/** The audiences that agents request. */
const AGENT_AUDIENCES = ["coder", "slipway"];
/** Maximum remaining validity of a token. The cloud's tokens are valid for an hour. */
const MAX_LIFETIME_MS = 24 * 3_600_000;

type Expected = {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly accessUrl: URL;
};

/** Returns the instance ID in the token. Throws `IdentityError`. */
export const verifyGoogleIdentity = async (
  files: IdentityFiles,
  token: string,
  { now, accessUrl }: Expected,
): Promise<string> => {
  const keySets = files.keySets.list() as JSONWebKeySet[];
  if (keySets.length === 0) throw new IdentityError("this server trusts no key of that cloud");
  const options = {
    algorithms: ["RS256", "ES256"],
    requiredClaims: ["exp"],
    currentDate: new Date(now),
    issuer: ISSUERS,
    audience: [...AGENT_AUDIENCES, accessUrl.href, accessUrl.origin],
  };
  const verify = async (keySet: JSONWebKeySet) => jwtVerify(token, createLocalJWKSet(keySet), options);
  for (const keySet of keySets) {
    const verified = await verify(keySet).catch(() => undefined);
    const { exp = 0 } = verified?.payload ?? {};
    if (verified && exp * 1000 <= now + MAX_LIFETIME_MS)
      return getText(verified.payload, "google", "compute_engine", "instance_id");
  }
  throw new IdentityError(
    "the token is malformed, past its time, made for another service, or signed with none of the trusted keys",
  );
};
