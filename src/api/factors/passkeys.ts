// A user's own passkeys: register, list, rename, delete. Changes of how the user signs in require recent reauthentication (rule FA-9).
import { t } from "elysia";
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { Passkey as PasskeyRow } from "#db/users/passkeys.ts";
import { beginPasskey, loadPasskeys, registerPasskey, removePasskey, renamePasskey } from "#domain/factors/passkeys.ts";
import { loadOwnAccount } from "#domain/factors/proof.ts";
import { userPath } from "#domain/users/find.ts";
import { NewPasskey, NewPasskeyRequest, Passkey, PasskeyChallenge, RenamePasskey } from "#schema/users/passkey.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Second factors"];

const passkeyPath = t.Object({
  user: userPath.properties.user,
  passkey: t.String({ maxLength: 64, description: "The ID of the passkey." }),
});

const presentPasskey = ({ id, name, created_at, last_used_at, backed_up }: PasskeyRow): Passkey => ({
  id,
  name,
  backed_up,
  created_at: toRfc3339(created_at),
  last_used_at: toOptionalRfc3339(last_used_at),
});

export const passkeys = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user/passkeys",
      async ({ caller, params }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        return (await loadPasskeys(ctx, user)).map(presentPasskey);
      },
      {
        enrolling: true,
        params: userPath,
        response: { 200: t.Array(Passkey), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listPasskeys",
          summary: "List your passkeys",
          description: "Returns passkeys, oldest first.",
          access: "owner_only",
          scope: "all",
        }),
      },
    )
    .post(
      "/:user/passkeys/start",
      async ({ caller, params, status }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        return status(201, await beginPasskey(ctx, user, caller));
      },
      {
        enrolling: true,
        params: userPath,
        response: { 201: PasskeyChallenge, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "startPasskeyRegistration",
          summary: "Start registering a passkey",
          description: "Returns 403 with the field `confirmation` if you must confirm your identity first.",
          access: "owner_only",
          scope: "all",
        }),
      },
    )
    .post(
      "/:user/passkeys",
      async ({ caller, params, body, status }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        const { passkey, codes } = await registerPasskey(ctx, user, caller, body);
        return status(201, { passkey: presentPasskey(passkey), recovery_codes: codes });
      },
      {
        enrolling: true,
        params: userPath,
        body: NewPasskeyRequest,
        response: { 201: NewPasskey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "createPasskey",
          summary: "Register a passkey",
          description:
            "Adds a passkey that you can sign in with. Afterwards, signing in with the password also requires a second factor.",
          example: {
            challenge: "from the response to the start request",
            name: "Laptop",
            credential: { id: "AQID", rawId: "AQID", type: "public-key", response: {} },
          },
          access: "owner_only",
          scope: "all",
        }),
      },
    )
    .patch(
      "/:user/passkeys/:passkey",
      async ({ caller, params, body }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        return presentPasskey(await renamePasskey(ctx, user, params.passkey, body.name));
      },
      {
        user: true,
        params: passkeyPath,
        body: RenamePasskey,
        response: { 200: Passkey, ...fails(400, 401, 403, 404, 415) },
        detail: operation({
          tags,
          operationId: "renamePasskey",
          summary: "Rename a passkey",
          example: { name: "Laptop" },
          access: "owner_only",
          scope: "all",
        }),
      },
    )
    .delete(
      "/:user/passkeys/:passkey",
      async ({ caller, params, status }) => {
        await removePasskey(ctx, await loadOwnAccount(ctx, params.user, caller), caller, params.passkey);
        return status(204, undefined);
      },
      {
        user: true,
        params: passkeyPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "deletePasskey",
          summary: "Delete a passkey",
          description:
            "If this was the last second factor, the recovery codes are also deleted. Returns 403 with the field `confirmation` if you must confirm your identity first.",
          access: "owner_only",
          scope: "all",
        }),
      },
    );
