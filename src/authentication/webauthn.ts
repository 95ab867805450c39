// WebAuthn with `@simplewebauthn/server`, loaded with the first passkey: creates the options for browsers and verifies their responses.
// User verification is always required, so that a passkey proves both possession and identity.
import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";

/** A stored passkey; texts are base64url. */
export type StoredPasskey = {
  readonly credential_id: string;
  readonly public_key: string;
  readonly counter: number;
  readonly transports: readonly string[];
};

/** The relying party: a host name, and the only origin where its passkeys can be used. */
export type RelyingParty = { readonly id: string; readonly origin: string };

/** The options for a browser, and the challenge that its response must contain. */
export type CeremonyOptions = { readonly options: Record<string, unknown>; readonly challenge: string };

/**
 * Returns the relying party of a URL; undefined where browsers support no passkeys: at IP addresses, and without HTTPS except on localhost.
 */
export const toRelyingParty = ({ hostname, origin, protocol }: URL): RelyingParty | undefined => {
  const isAddress = /^[\d.]+$/.test(hostname) || hostname.startsWith("[");
  return !isAddress && (protocol === "https:" || hostname === "localhost") ? { id: hostname, origin } : undefined;
};

const toTransports = (names: readonly string[]): AuthenticatorTransport[] => [
  ...(names as readonly AuthenticatorTransport[]),
];

const toCredentialDescriptors = (passkeys: readonly StoredPasskey[]) =>
  passkeys.map(({ credential_id, transports }) => ({ id: credential_id, transports: toTransports(transports) }));

type PasskeyUser = { readonly id: string; readonly email: string; readonly name: string };

/** Creates the options for registering a discoverable passkey. Devices with one of the `existing` passkeys are excluded. */
export const createRegistrationOptions = async (
  party: RelyingParty,
  user: PasskeyUser,
  existing: readonly StoredPasskey[],
): Promise<CeremonyOptions> => {
  const { generateRegistrationOptions } = await import("@simplewebauthn/server");
  const options = await generateRegistrationOptions({
    rpName: "Slipway",
    rpID: party.id,
    attestationType: "none",
    userID: new TextEncoder().encode(user.id),
    userName: user.email,
    userDisplayName: user.name || user.email,
    excludeCredentials: toCredentialDescriptors(existing),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
  return { options: { ...options }, challenge: options.challenge };
};

/** Returns the new passkey; undefined if the response is invalid. */
export const verifyRegistration = async (
  party: RelyingParty,
  challenge: string,
  response: unknown,
): Promise<(StoredPasskey & { backed_up: boolean }) | undefined> => {
  const { verifyRegistrationResponse } = await import("@simplewebauthn/server");
  try {
    const { verified, registrationInfo: info } = await verifyRegistrationResponse({
      response: response as RegistrationResponseJSON,
      expectedChallenge: challenge,
      requireUserVerification: true,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
    });
    if (!verified) return undefined;
    const { id, publicKey, counter, transports = [] } = info.credential;
    return {
      credential_id: id,
      public_key: Buffer.from(publicKey).toString("base64url"),
      counter,
      transports: transports.slice(0, 10).map(String),
      backed_up: info.credentialBackedUp,
    };
  } catch {
    // The sender cannot fix an invalid response, so no reason is given.
    return undefined;
  }
};

/** Creates the options for signing in with one of these passkeys, or with any passkey for this server. */
export const createAuthenticationOptions = async (
  party: RelyingParty,
  passkeys: readonly StoredPasskey[] = [],
): Promise<CeremonyOptions> => {
  const { generateAuthenticationOptions } = await import("@simplewebauthn/server");
  const options = await generateAuthenticationOptions({
    rpID: party.id,
    userVerification: "required",
    allowCredentials: toCredentialDescriptors(passkeys),
  });
  return { options: { ...options }, challenge: options.challenge };
};

/** Returns the passkey's new counter; undefined if the response is invalid. */
export const verifyAuthentication = async (
  party: RelyingParty,
  challenge: string,
  response: unknown,
  passkey: StoredPasskey,
): Promise<number | undefined> => {
  const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
  const { credential_id: id, public_key, counter, transports } = passkey;
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      requireUserVerification: true,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      credential: {
        id,
        counter,
        transports: toTransports(transports),
        publicKey: new Uint8Array(Buffer.from(public_key, "base64url")),
      },
    });
    return verified ? authenticationInfo.newCounter : undefined;
  } catch {
    return undefined;
  }
};
