// Signs requests and verifies signed responses: JSON Web Tokens with HS256 and a shared secret, over the exact bytes.
import { jwtVerify, SignJWT } from "jose";
import { sha256 } from "#base/ids.ts";
import { AnswerProblem } from "./protocol.ts";

/** Claims that both tokens of a dispatch share. */
export type Dispatch = {
  readonly dispatch_id: string;
  readonly event: string;
  /** `slipway:chat:<id>`. */
  readonly subject: string;
  /** The consumer's URL exactly as it is configured. */
  readonly audience: string;
};

/** Validity of a token in seconds, and the tolerance for clock differences. */
const LIFETIME_S = 120;
const BACKDATE_S = 30;

const toKey = (secret: string): Uint8Array => new TextEncoder().encode(secret);

/** Returns the token of a request. `issuer` identifies the signer; `now` is in milliseconds since 1970. */
export const signRequest = (
  secret: string,
  { dispatch_id, event, subject, audience }: Dispatch,
  { issuer, body, now }: { readonly issuer: string; readonly body: Uint8Array; readonly now: number },
): Promise<string> => {
  const iat = Math.floor(now / 1000);
  return new SignJWT({ type: event, body_sha256: sha256(body) })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience(audience)
    .setJti(dispatch_id)
    .setIssuedAt(iat)
    .setNotBefore(iat - BACKDATE_S)
    .setExpirationTime(iat + LIFETIME_S)
    .sign(toKey(secret));
};

/**
 * Throws `AnswerProblem` unless one of the secrets signed this response to this dispatch. A response must not have `issuer`, which is this
 * deployment, as its own issuer.
 */
export const checkSignature = async (
  token: string | null,
  secrets: readonly string[],
  { dispatch_id, event, subject, audience }: Dispatch,
  { issuer, body, now }: { readonly issuer: string; readonly body: Uint8Array; readonly now: number },
): Promise<void> => {
  if (!token) throw new AnswerProblem("the answer is not signed");
  const claims = await verifyClaims(token, secrets, { subject, audience, currentDate: new Date(now) });
  const { jti, iss, iat, aud } = claims;
  const isValid =
    jti === dispatch_id &&
    claims.type === event &&
    aud === audience &&
    typeof iss === "string" &&
    iss !== "" &&
    iss !== issuer &&
    (iat ?? Number.POSITIVE_INFINITY) <= now / 1000 + BACKDATE_S &&
    claims.body_sha256 === sha256(body);
  if (!isValid) throw new AnswerProblem("the signature is for another dispatch or body");
};

const verifyClaims = async (
  token: string,
  secrets: readonly string[],
  expected: { subject: string; audience: string; currentDate: Date },
) => {
  for (const secret of secrets) {
    const rules = { ...expected, algorithms: ["HS256"], requiredClaims: ["iss", "iat", "nbf", "exp", "jti"] };
    const verified = await jwtVerify(token, toKey(secret), rules).catch(() => undefined);
    if (verified) return verified.payload;
  }
  throw new AnswerProblem("the signature is wrong");
};
