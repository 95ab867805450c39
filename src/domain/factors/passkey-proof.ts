// Proving who one is with a passkey: asked for once, answered once. Used for signing in and for confirming.
import { AppError } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findPasskeyByCredential, listPasskeys, type Passkey, usePasskey } from "#db/users/passkeys.ts";
import type { PasskeyChallenge } from "#schema/users/passkey.ts";
import { askToProve, type Party, proved, toParty } from "#src/authentication/webauthn.ts";
import type { DomainContext } from "../context.ts";
import type { Opened } from "./challenges.ts";

/** 400 where browsers would refuse. */
export const partyAt = ({ accessUrl }: DomainContext): Party => {
  const party = toParty(accessUrl);
  if (party) return party;
  throw new AppError("invalid", "Passkeys need a host name and HTTPS.", {
    detail: "Set access_url to an https URL with a host name. On one machine, http://localhost also works.",
  });
};

/** What was asked; `of`: what else has to be known when the answer comes. */
type Begun<T> = { readonly challenge: string; readonly of: T };

/** Asks for a passkey of this user, or for any. */
export const askForPasskey = async <T extends object>(
  ctx: DomainContext,
  purpose: string,
  of: T,
  user_id?: string,
): Promise<PasskeyChallenge> => {
  const known = user_id === undefined ? [] : await ctx.store.all(listPasskeys({ user_id }));
  const { options, challenge } = await askToProve(partyAt(ctx), known);
  const begun: Begun<T> = { challenge, of };
  return { ...ctx.accounts.factors.challenges.offer(`passkey:${purpose}`, begun), options };
};

type Given = { readonly challenge: string; readonly credential: { readonly id: string; readonly response: unknown } };

/** A proof that holds and is used up here and now; `statements` note the use. */
export type PasskeyProved<T> = {
  readonly of: T;
  readonly passkey: Passkey;
  readonly statements: readonly Statement[];
  readonly opened: Opened<unknown>;
};

/** What the answer proves; undefined when it does not hold, was given before, or nobody asked. */
export const provedByPasskey = async <T>(
  ctx: DomainContext,
  purpose: string,
  { challenge, credential }: Given,
): Promise<PasskeyProved<T> | undefined> => {
  const { challenges } = ctx.accounts.factors;
  const opened = challenges.open<Begun<T>>(`passkey:${purpose}`, challenge);
  const passkey = opened && (await ctx.store.get(findPasskeyByCredential({ credential_id: credential.id })));
  if (!opened || !passkey) return undefined;
  const counter = await proved(partyAt(ctx), opened.data.challenge, credential, passkey);
  if (counter === undefined || !challenges.spend(opened)) return undefined;
  const { id, counter: known_counter } = passkey;
  const statements = [usePasskey({ id, known_counter, counter, now: ctx.clock.now() })];
  return { of: opened.data.of, passkey, statements, opened };
};
