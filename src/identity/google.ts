// Verifies Google Cloud instance identities: a JSON Web Token signed with one of the cloud's keys, which are in files (facts/platform 8.3).
// The audience is not checked, because agents may use any.
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import { getText, IdentityError, type IdentityFiles } from "./identity.ts";

/** Returns the instance ID in the token. `now` is in milliseconds since 1970. Throws `IdentityError`. */
export const verifyGoogleIdentity = async (files: IdentityFiles, token: string, now: number): Promise<string> => {
  const sets = files.keySets.list() as JSONWebKeySet[];
  if (sets.length === 0) throw new IdentityError("this server trusts no key of that cloud");
  const options = { algorithms: ["RS256", "ES256"], requiredClaims: ["exp"], currentDate: new Date(now) };
  const verify = async (set: JSONWebKeySet) => jwtVerify(token, createLocalJWKSet(set), options);
  for (const set of sets) {
    const verified = await verify(set).catch(() => undefined);
    if (verified) return getText(verified.payload, "google", "compute_engine", "instance_id");
  }
  throw new IdentityError("the token is malformed, past its time, or signed with none of the trusted keys");
};
