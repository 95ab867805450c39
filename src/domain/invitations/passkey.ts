// The passkey of a person without an account: requested with the invitation link, and stored with the account.
import { conflict, invalid, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { InvitationRow } from "#db/users/invitations.ts";
import { findPasskeyByCredential, insertPasskey, type Passkey } from "#db/users/passkeys.ts";
import type { User } from "#db/users/users.ts";
import type { AcceptInvitation } from "#schema/users/invitation.ts";
import type { PasskeyChallenge } from "#schema/users/passkey.ts";
import { createRegistrationOptions, verifyRegistration } from "#src/authentication/webauthn.ts";
import type { DomainContext } from "../context.ts";
import { auditPasskey } from "../factors/passkey-entry.ts";
import { getRelyingParty } from "../factors/passkey-proof.ts";

const PURPOSE = "passkey_invitation";

type PendingInvitedPasskey = { readonly user_id: string; readonly invitation: string; readonly challenge: string };
type PasskeyInput = NonNullable<AcceptInvitation["passkey"]>;

/** Returns the options for the browser. Rejects with 400 when browsers would not accept the origin. */
export const beginInvitedPasskey = async (
  ctx: DomainContext,
  { id: invitation, email }: InvitationRow,
  username: string,
): Promise<PasskeyChallenge> => {
  const user_id = uuid();
  const { options, challenge } = await createRegistrationOptions(
    getRelyingParty(ctx),
    { id: user_id, email, name: username },
    [],
  );
  const started: PendingInvitedPasskey = { user_id, invitation, challenge };
  return { ...ctx.accounts.factors.challenges.offer(PURPOSE, started), options };
};

/** Returns the passkey and the ID of its account. Rejects with 400 when the response is invalid. */
export const registerInvitedPasskey = async (
  ctx: DomainContext,
  { id }: InvitationRow,
  { challenge, name, credential }: PasskeyInput,
): Promise<Passkey> => {
  const { challenges } = ctx.accounts.factors;
  const opened = challenges.open<PendingInvitedPasskey>(PURPOSE, challenge);
  if (opened?.data.invitation !== id) throw invalid("This registration has expired. Start again.");
  const created = await verifyRegistration(getRelyingParty(ctx), opened.data.challenge, credential);
  if (!created) throw invalidField("passkey.credential", "The browser's response is not valid. Try again.");
  if (await ctx.store.get(findPasskeyByCredential({ credential_id: created.credential_id }))) {
    throw conflict("This passkey is already registered.");
  }
  if (!challenges.spend(opened)) throw conflict("This registration has ended. Start again.");
  return {
    ...created,
    id: uuid(),
    user_id: opened.data.user_id,
    name: name.trim() || "Passkey",
    created_at: ctx.clock.now(),
    last_used_at: null,
    transports: [...created.transports],
  };
};

/** Returns the statements that store the passkey and its recovery codes, for the batch of the account. */
export const storeInvitedPasskey = (
  ctx: DomainContext,
  user: User,
  passkey: Passkey,
): { readonly codes: string[]; readonly statements: readonly Statement[] } => {
  const { codes, statements } = ctx.accounts.factors.renewRecoveryCodes(user);
  return {
    codes,
    statements: [insertPasskey(passkey), auditPasskey(user, { after: passkey }, ctx.clock.now()), ...statements],
  };
};
