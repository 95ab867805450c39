// Proves a user's identity with a passkey; each request can be answered once. Used for sign-in and reauthentication.
import { AppError } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findPasskeyByCredential, listPasskeys, type Passkey, usePasskey } from "#db/users/passkeys.ts";
import type { PasskeyChallenge } from "#schema/users/passkey.ts";
import {
  createAuthenticationOptions,
  type RelyingParty,
  toRelyingParty,
  verifyAuthentication,
} from "#src/authentication/webauthn.ts";
import type { DomainContext } from "../context.ts";
import type { OpenedChallenge } from "./challenges.ts";

/** Rejects with 400 when browsers would not accept the origin. */
export const getRelyingParty = ({ accessUrl }: DomainContext): RelyingParty => {
  const party = toRelyingParty(accessUrl);
  if (party) return party;
  throw new AppError("invalid", "Passkeys need a host name and HTTPS.", {
    detail: "Set access_url to an https URL with a host name. On one machine, http://localhost also works.",
  });
};

/** A pending request; `of` is data needed when the response arrives. */
type PendingProof<T> = { readonly challenge: string; readonly of: T };

/** Requests a passkey of this user, or any passkey. */
export const requestPasskey = async <T extends object>(
  ctx: DomainContext,
  purpose: string,
  about: T,
  user_id?: string,
): Promise<PasskeyChallenge> => {
  const passkeys = user_id === undefined ? [] : await ctx.store.all(listPasskeys({ user_id }));
  const { options, challenge } = await createAuthenticationOptions(getRelyingParty(ctx), passkeys);
  const started: PendingProof<T> = { challenge, of: about };
  return { ...ctx.accounts.factors.challenges.offer(`passkey:${purpose}`, started), options };
};

type PasskeyResponse = {
  readonly challenge: string;
  readonly credential: { readonly id: string; readonly response: unknown };
};

/** A valid proof that is now used up; `statements` record the use. */
export type PasskeyProof<T> = {
  readonly of: T;
  readonly passkey: Passkey;
  readonly statements: readonly Statement[];
  readonly opened: OpenedChallenge<unknown>;
};

/** Returns what the response proves; undefined when it is invalid, was already used, or was not requested. */
export const verifyPasskey = async <T>(
  ctx: DomainContext,
  purpose: string,
  { challenge, credential }: PasskeyResponse,
): Promise<PasskeyProof<T> | undefined> => {
  const { challenges } = ctx.accounts.factors;
  const opened = challenges.open<PendingProof<T>>(`passkey:${purpose}`, challenge);
  const passkey = opened && (await ctx.store.get(findPasskeyByCredential({ credential_id: credential.id })));
  if (!opened || !passkey) return undefined;
  const counter = await verifyAuthentication(getRelyingParty(ctx), opened.data.challenge, credential, passkey);
  if (counter === undefined || !challenges.spend(opened)) return undefined;
  const { id, counter: known_counter } = passkey;
  const statements = [usePasskey({ id, known_counter, counter, now: ctx.clock.now() })];
  return { of: opened.data.of, passkey, statements, opened };
};
