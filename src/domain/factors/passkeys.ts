// A user's passkeys: registered, renamed, deleted. Changes to sign-in require recent reauthentication (FA-9).
import type { Static } from "@sinclair/typebox";
import { conflict, invalid, invalidField, notFound } from "#base/errors.ts";
import { isUuid, uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { deleteRecoveryCodesByUser } from "#db/second-factors.ts";
import { guardKey } from "#db/users/api-keys.ts";
import { deletePasskey, insertPasskey, listPasskeys, type Passkey, updatePasskey } from "#db/users/passkeys.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { NewPasskeyRequest, PasskeyChallenge } from "#schema/users/passkey.ts";
import { createRegistrationOptions, verifyRegistration } from "#src/authentication/webauthn.ts";
import type { DomainContext } from "../context.ts";
import type { KnownUser } from "../users/find.ts";
import { recordProof } from "../users/sign-in.ts";
import { auditPasskey } from "./passkey-entry.ts";
import { getRelyingParty } from "./passkey-proof.ts";
import { requireProof } from "./proof.ts";

const PURPOSE = "passkey_registration";
/** More devices than anyone has. */
const MAX_PASSKEYS = 20;

type PendingPasskey = { readonly user_id: string; readonly challenge: string };

/** Oldest first. */
export const loadPasskeys = (ctx: DomainContext, { id }: KnownUser): Promise<Passkey[]> =>
  ctx.store.all(listPasskeys({ user_id: id }));

/** Returns the options for the browser. Rejects with 409 when there are too many passkeys. */
export const beginPasskey = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
): Promise<PasskeyChallenge> => {
  await requireProof(ctx, caller);
  const passkeys = await loadPasskeys(ctx, user);
  if (passkeys.length >= MAX_PASSKEYS)
    throw conflict(`You can have at most ${MAX_PASSKEYS} passkeys. Delete one first.`);
  const { options, challenge } = await createRegistrationOptions(getRelyingParty(ctx), user, passkeys);
  const started: PendingPasskey = { user_id: user.id, challenge };
  return { ...ctx.accounts.factors.challenges.offer(PURPOSE, started), options };
};

/** Returns the passkey, and the recovery codes if it is the first factor. */
export const registerPasskey = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  input: Static<typeof NewPasskeyRequest>,
): Promise<{ readonly passkey: Passkey; readonly codes: string[] }> => {
  const { factors } = ctx.accounts;
  await requireProof(ctx, caller);
  const opened = factors.challenges.open<PendingPasskey>(PURPOSE, input.challenge);
  if (opened?.data.user_id !== user.id) {
    throw invalid("This registration has expired. Start again.");
  }
  const created = await verifyRegistration(getRelyingParty(ctx), opened.data.challenge, input.credential);
  if (!created) throw invalidField("credential", "The browser's response is not valid. Try again.");
  if (!factors.challenges.spend(opened)) throw conflict("This registration has ended. Start again.");
  const now = ctx.clock.now();
  const passkey: Passkey = {
    ...created,
    id: uuid(),
    user_id: user.id,
    name: input.name.trim() || "Passkey",
    created_at: now,
    last_used_at: null,
    transports: [...created.transports],
  };
  const isFirst = (await factors.listMethods(user.id)).length === 0;
  const { codes, statements } = isFirst ? factors.renewRecoveryCodes(user) : { codes: [], statements: [] };
  try {
    await ctx.store.commit([
      guardKey({ id: caller.key_id, now }),
      insertPasskey(passkey),
      auditPasskey(user, { after: passkey }, now),
      ...statements,
      recordProof(caller.key_id, { password: false, factor: true }, now),
    ]);
  } catch (error) {
    factors.challenges.restore(opened);
    if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
    throw conflict("This passkey is already registered.");
  }
  return { passkey, codes };
};

/** An empty name is ignored. Rejects with 404. */
export const renamePasskey = async (
  ctx: DomainContext,
  user: KnownUser,
  id: string,
  name: string,
): Promise<Passkey> => {
  const before = await findOwn(ctx, user, id);
  const after = { ...before, name: name.trim() || before.name };
  if (after.name !== before.name) {
    await ctx.store.commit([
      updatePasskey(before.id, { name: after.name }),
      auditPasskey(user, { before, after }, ctx.clock.now()),
    ]);
  }
  return after;
};

/** Removing the last second factor also removes the recovery codes. Rejects with 404. */
export const removePasskey = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  id: string,
): Promise<void> => {
  const before = await findOwn(ctx, user, id);
  await requireProof(ctx, caller);
  const now = ctx.clock.now();
  const isLast = (await loadPasskeys(ctx, user)).length === 1 && !(await ctx.accounts.factors.totp(user.id));
  await ctx.store.commit([
    guardKey({ id: caller.key_id, now }),
    { ...deletePasskey(before.id), expect: 1 },
    ...(isLast ? [deleteRecoveryCodesByUser(user.id)] : []),
    auditPasskey(user, { before }, now),
  ]);
};

const findOwn = async (ctx: DomainContext, user: KnownUser, id: string): Promise<Passkey> => {
  const found = isUuid(id) ? (await loadPasskeys(ctx, user)).find((one) => one.id === id.toLowerCase()) : undefined;
  if (!found) throw notFound();
  return found;
};
