// WebAuthn by `@simplewebauthn/server`, loaded with the first passkey: what browsers are asked, and whether what they answer holds. User
// verification is always demanded, so that a passkey stands for possession and person at once.
import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";

/** A passkey as it is stored: base64url texts. */
export type StoredPasskey = {
  readonly credential_id: string;
  readonly public_key: string;
  readonly counter: number;
  readonly transports: readonly string[];
};

/** Whom passkeys are for: a host name, and the one origin where they are used. */
export type Party = { readonly id: string; readonly origin: string };

/** What a browser is asked, with the challenge that its answer must hold. */
export type Asked = { readonly options: Record<string, unknown>; readonly challenge: string };

/** Browsers take no address for a name, and give no passkeys without encryption but on this machine. */
export const toParty = ({ hostname, origin, protocol }: URL): Party | undefined => {
  const isAddress = /^[\d.]+$/.test(hostname) || hostname.startsWith("[");
  return !isAddress && (protocol === "https:" || hostname === "localhost") ? { id: hostname, origin } : undefined;
};

const toTransports = (names: readonly string[]): AuthenticatorTransport[] => [
  ...(names as readonly AuthenticatorTransport[]),
];

const allowed = (known: readonly StoredPasskey[]) =>
  known.map(({ credential_id, transports }) => ({ id: credential_id, transports: toTransports(transports) }));

type Holder = { readonly id: string; readonly email: string; readonly name: string };

/** Asks for a new passkey that is found without a name, on a device that has none of these. */
export const askToRegister = async (party: Party, user: Holder, known: readonly StoredPasskey[]): Promise<Asked> => {
  const { generateRegistrationOptions } = await import("@simplewebauthn/server");
  const options = await generateRegistrationOptions({
    rpName: "Slipway",
    rpID: party.id,
    attestationType: "none",
    userID: new TextEncoder().encode(user.id),
    userName: user.email,
    userDisplayName: user.name || user.email,
    excludeCredentials: allowed(known),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
  return { options: { ...options }, challenge: options.challenge };
};

/** The new passkey; undefined when the answer does not hold. */
export const registered = async (
  party: Party,
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
    // Whatever is wrong with it was made elsewhere, and is of no use to who sent it.
    return undefined;
  }
};

/** Asks for one of these passkeys, or for any that the device has for us. */
export const askToProve = async (party: Party, known: readonly StoredPasskey[] = []): Promise<Asked> => {
  const { generateAuthenticationOptions } = await import("@simplewebauthn/server");
  const options = await generateAuthenticationOptions({
    rpID: party.id,
    userVerification: "required",
    allowCredentials: allowed(known),
  });
  return { options: { ...options }, challenge: options.challenge };
};

/** The counter of the passkey after this answer; undefined when it does not hold. */
export const proved = async (
  party: Party,
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
