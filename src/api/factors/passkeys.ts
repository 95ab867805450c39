// The passkeys of a user: register, list, name, delete. Each for themselves; what changes how they sign in takes a recent proof (FA-9).
import { Elysia, t } from "elysia";
import { rfc3339, rfc3339OrAbsent } from "#base/clock.ts";
import { conflict, invalid, invalidField, notFound } from "#base/errors.ts";
import { isUuid, uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { deleteRecoveryCodesOf } from "#db/second-factors.ts";
import { isKeyStill } from "#db/users/api-keys.ts";
import {
  deletePasskey,
  insertPasskey,
  listPasskeys,
  type Passkey as PasskeyRow,
  updatePasskey,
} from "#db/users/passkeys.ts";
import { passkeyEntry } from "#domain/factors/passkey-entry.ts";
import { partyAt } from "#domain/factors/passkey-proof.ts";
import { userPath } from "#domain/users/user.ts";
import { NewPasskey, NewPasskeyRequest, Passkey, PasskeyChallenge, RenamePasskey } from "#schema/passkey.ts";
import { askToRegister, registered } from "#src/authentication/webauthn.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";
import { noteProof } from "../users/new-session.ts";
import { mustBeProved, ownAccountAt } from "./proof.ts";

const tags = ["Second factors"];
const PURPOSE = "passkey_registration";
/** More than anybody has devices. */
const MOST = 20;

type Begun = { readonly user_id: string; readonly challenge: string };

const passkeyPath = t.Object({
  user: userPath.properties.user,
  passkey: t.String({ maxLength: 64, description: "Id of the passkey." }),
});

const show = ({ id, name, created_at, last_used_at, backed_up }: PasskeyRow): Passkey => ({
  ...{ id, name, backed_up, created_at: rfc3339(created_at), last_used_at: rfc3339OrAbsent(last_used_at) },
});

const ownPasskey = async (ctx: ApiContext, user_id: string, id: string): Promise<PasskeyRow> => {
  const mine = await ctx.store.all(listPasskeys({ user_id }));
  const found = isUuid(id) ? mine.find((one) => one.id === id.toLowerCase()) : undefined;
  if (!found) throw notFound();
  return found;
};

export const passkeys = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .get(
      "/:user/passkeys",
      async ({ caller, params }) => {
        const user = await ownAccountAt(ctx, params.user, caller);
        return (await ctx.store.all(listPasskeys({ user_id: user.id }))).map(show);
      },
      {
        enrolling: true,
        params: userPath,
        response: { 200: t.Array(Passkey), ...fails(400, 401, 403, 404) },
        detail: { tags, summary: "List one's passkeys", description: "Oldest first." },
      },
    )
    .post(
      "/:user/passkeys/start",
      async ({ caller, params, status }) => {
        const user = await ownAccountAt(ctx, params.user, caller);
        await mustBeProved(ctx, caller);
        const known = await ctx.store.all(listPasskeys({ user_id: user.id }));
        if (known.length >= MOST) throw conflict(`There are ${MOST} passkeys already. Delete one first.`);
        const { options, challenge } = await askToRegister(partyAt(ctx), user, known);
        const begun: Begun = { user_id: user.id, challenge };
        return status(201, { ...ctx.accounts.factors.challenges.offer(PURPOSE, begun), options });
      },
      {
        enrolling: true,
        params: userPath,
        response: { 201: PasskeyChallenge, ...fails(400, 401, 403, 404, 409) },
        detail: {
          tags,
          summary: "Begin to register a passkey",
          description: "403 naming `confirmation`: confirm first who you are.",
        },
      },
    )
    .post(
      "/:user/passkeys",
      async ({ caller, params, body, status }) => {
        const { factors } = ctx.accounts;
        const user = await ownAccountAt(ctx, params.user, caller);
        await mustBeProved(ctx, caller);
        const opened = factors.challenges.open<Begun>(PURPOSE, body.challenge);
        if (opened?.data.user_id !== user.id) {
          throw invalid("This registration was begun too long ago, or is over. Begin it again.");
        }
        const made = await registered(partyAt(ctx), opened.data.challenge, body.credential);
        if (!made) throw invalidField("credential", "The answer of the browser does not hold.");
        if (!factors.challenges.spend(opened)) throw conflict("This registration is over. Begin it again.");
        const now = ctx.clock.now();
        const row: PasskeyRow = {
          ...{ id: uuid(), user_id: user.id, name: body.name.trim() || "Passkey", created_at: now, last_used_at: null },
          ...{ ...made, transports: [...made.transports] },
        };
        const isFirst = (await factors.methodsOf(user.id)).length === 0;
        const { codes, statements } = isFirst ? factors.renewRecoveryCodes(user) : { codes: [], statements: [] };
        try {
          await ctx.store.commit([
            isKeyStill({ id: caller.key_id, now }),
            insertPasskey(row),
            passkeyEntry(user, { after: row }, now),
            ...statements,
            noteProof(caller.key_id, { password: false, factor: true }, now),
          ]);
        } catch (error) {
          factors.challenges.restore(opened);
          if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
          throw conflict("This passkey is registered already.");
        }
        return status(201, { passkey: show(row), recovery_codes: codes });
      },
      {
        enrolling: true,
        params: userPath,
        body: NewPasskeyRequest,
        response: { 201: NewPasskey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: {
          tags,
          summary: "Register a passkey",
          description:
            "From now on it signs in alone, and signing in with the password needs it or another second factor, too.",
        },
      },
    )
    .patch(
      "/:user/passkeys/:passkey",
      async ({ caller, params, body }) => {
        const user = await ownAccountAt(ctx, params.user, caller);
        const before = await ownPasskey(ctx, user.id, params.passkey);
        const after = { ...before, name: body.name.trim() || before.name };
        if (after.name !== before.name) {
          await ctx.store.commit([
            updatePasskey(before.id, { name: after.name }),
            passkeyEntry(user, { before, after }, ctx.clock.now()),
          ]);
        }
        return show(after);
      },
      {
        user: true,
        params: passkeyPath,
        body: RenamePasskey,
        response: { 200: Passkey, ...fails(400, 401, 403, 404, 415) },
        detail: { tags, summary: "Name a passkey" },
      },
    )
    .delete(
      "/:user/passkeys/:passkey",
      async ({ caller, params, status }) => {
        const { factors } = ctx.accounts;
        const user = await ownAccountAt(ctx, params.user, caller);
        const before = await ownPasskey(ctx, user.id, params.passkey);
        await mustBeProved(ctx, caller);
        const now = ctx.clock.now();
        const isLast =
          (await ctx.store.all(listPasskeys({ user_id: user.id }))).length === 1 && !(await factors.totp(user.id));
        await ctx.store.commit([
          isKeyStill({ id: caller.key_id, now }),
          { ...deletePasskey(before.id), expect: 1 },
          ...(isLast ? [deleteRecoveryCodesOf(user.id)] : []),
          passkeyEntry(user, { before }, now),
        ]);
        return status(204, undefined);
      },
      {
        user: true,
        params: passkeyPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409) },
        detail: {
          tags,
          summary: "Delete a passkey",
          description:
            "The recovery codes go with the last second factor. 403 naming `confirmation`: confirm first who you are.",
        },
      },
    );
