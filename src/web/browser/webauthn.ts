// The browser's side of passkeys: calls the authenticator and returns its response as JSON.
import type { CredentialJson, PasskeyChallenge } from "#schema/users/passkey.ts";
import { call } from "./api.ts";

type Json = PublicKeyCredentialCreationOptionsJSON & PublicKeyCredentialRequestOptionsJSON;

/** True if this browser supports the JSON forms of WebAuthn. */
export const supportsPasskeys = (): boolean =>
  typeof PublicKeyCredential !== "undefined" && "parseRequestOptionsFromJSON" in PublicKeyCredential;

const toJson = async (operation: Promise<Credential | null>): Promise<CredentialJson> => {
  const credential = await operation.catch((error: unknown) => {
    const name = error instanceof Error ? error.name : "";
    if (name === "InvalidStateError") throw new Error("This device already has a passkey for your account.");
    throw new Error(
      name === "NotAllowedError"
        ? "The passkey prompt was closed. Try again."
        : `The passkey failed (${name}). Try again, or use another way to sign in.`,
    );
  });
  if (!(credential instanceof PublicKeyCredential)) throw new Error("The passkey prompt was closed. Try again.");
  return credential.toJSON();
};

/** Starts the operation at `path` and returns the body of the request that completes it. */
export const usePasskey = async (
  path: string,
  body?: object,
): Promise<{ challenge: string; credential: CredentialJson }> => {
  const { challenge, options } = await call<PasskeyChallenge>("POST", path, body);
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as unknown as Json);
  return { challenge, credential: await toJson(navigator.credentials.get({ publicKey })) };
};

export const createPasskey = async (
  path: string,
  body?: object,
): Promise<{ challenge: string; credential: CredentialJson }> => {
  const { challenge, options } = await call<PasskeyChallenge>("POST", path, body);
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as unknown as Json);
  return { challenge, credential: await toJson(navigator.credentials.create({ publicKey })) };
};
