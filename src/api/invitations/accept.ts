// Routes for a person with an invitation link: view the invitation, and accept it with a password, a passkey or a provider sign-in. The
// token is only sent in bodies (rule IV-2).
import { type AppError, conflict } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { checkSignInMethod, findValidInvitation, makeAccount, openInvitation } from "#domain/invitations/accept.ts";
import { beginInvitedPasskey, registerInvitedPasskey, storeInvitedPasskey } from "#domain/invitations/passkey.ts";
import { redirectUri } from "#domain/oidc/providers.ts";
import { requireNotHeld } from "#domain/users/free-username.ts";
import { toTakenConflict, USER_UNIQUE_FIELDS } from "#domain/users/name-conflicts.ts";
import { checkUsername } from "#domain/users/usernames.ts";
import {
  AcceptByOidc,
  AcceptByPasskey,
  AcceptInvitation,
  InvitationAccepted,
  InvitationToken,
  OpenInvitation,
} from "#schema/users/invitation.ts";
import { OidcTrialStarted } from "#schema/users/oidc.ts";
import { PasskeyChallenge } from "#schema/users/passkey.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { toSignInError } from "../oidc/refusals.ts";
import { formatStateCookie, sealState } from "../oidc/sign-in-state.ts";
import { openSession } from "../users/new-session.ts";

const tags = ["Invitations"];
const TOKEN = "the part of the link behind the #";

const toAcceptError = (error: unknown): AppError => {
  if (error instanceof CommitError && error.reason === "stale") {
    return conflict("This invitation was used or changed at the same time. Open the link again.");
  }
  return toTakenConflict(error, USER_UNIQUE_FIELDS);
};

export const acceptInvitation = (ctx: ApiContext) =>
  routes()
    .post("/look", ({ body }) => openInvitation(ctx, body.token), {
      body: InvitationToken,
      response: { 200: OpenInvitation, ...fails(400, 403, 404, 410, 415) },
      detail: operation({
        reads: "public",
        tags,
        operationId: "getInvitation",
        access: "anyone",
        summary: "Get an invitation",
        description: "For the invited person, who has the link. Does not change the invitation.",
        security: [],
        example: { token: TOKEN },
      }),
    })
    .post(
      "/accept",
      async ({ body, request, set, status }) => {
        const { accounts } = ctx;
        const { token, username, password, passkey: newPasskey } = body;
        const row = await findValidInvitation(ctx, token);
        checkSignInMethod(body);
        checkUsername(username);
        await requireNotHeld(ctx, username);
        if (password !== undefined) await accounts.passwords.check(password, { username, email: row.email });
        const passkey = newPasskey && (await registerInvitedPasskey(ctx, row, newPasskey));
        const password_hash = password === undefined ? "" : await accounts.passwords.hash(password);
        const { user, statements } = await makeAccount(ctx, row, {
          id: passkey?.user_id ?? uuid(),
          username,
          name: body.name?.trim() ?? row.name,
          login_type: "password",
          password_hash,
        });
        const storedPasskey = passkey && storeInvitedPasskey(ctx, user, passkey);
        const provenFactors = { password: true, factor: passkey !== undefined };
        const guards = [...statements, ...(storedPasskey?.statements ?? [])];
        const session = await openSession(ctx, user, request, provenFactors, guards).catch((error) =>
          Promise.reject(toAcceptError(error)),
        );
        ctx.topics.publish("notified", user.id, {});
        set.headers["set-cookie"] = session.cookie;
        return status(201, {
          session_token: session.token,
          ...(storedPasskey ? { recovery_codes: storedPasskey.codes } : {}),
        });
      },
      {
        body: AcceptInvitation,
        response: { 201: InvitationAccepted, ...fails(400, 403, 404, 409, 410, 415, 503) },
        detail: operation({
          reads: "public",
          tags,
          operationId: "acceptInvitation",
          access: "anyone",
          summary: "Accept an invitation",
          description:
            "Creates the account with a password or a passkey, and signs in. Also sets the session cookie. The link works once.",
          security: [],
          example: { token: TOKEN, username: "ada", name: "Ada Lovelace", password: "a long passphrase of yours" },
        }),
      },
    )
    .post(
      "/accept/passkey/start",
      async ({ body, status }) => {
        const row = await findValidInvitation(ctx, body.token);
        checkUsername(body.username);
        await requireNotHeld(ctx, body.username);
        return status(201, await beginInvitedPasskey(ctx, row, body.username));
      },
      {
        body: AcceptByPasskey,
        response: { 201: PasskeyChallenge, ...fails(400, 404, 410, 415) },
        detail: operation({
          reads: "public",
          tags,
          operationId: "startInvitationPasskey",
          access: "anyone",
          summary: "Start accepting an invitation with a passkey",
          security: [],
          example: { token: TOKEN, username: "ada" },
        }),
      },
    )
    .post(
      "/accept/oidc",
      async ({ body, set, status }) => {
        const row = await findValidInvitation(ctx, body.token);
        const client = ctx.oidc.get(body.provider);
        const { id } = client.setting;
        const callbackUrl = redirectUri(id, ctx.accessUrl).href;
        const { url, checks } = await client.begin(callbackUrl).catch((error) => Promise.reject(toSignInError(error)));
        const sealed = sealState(ctx, id, { checks, back: "/", invitation: row.token_hash });
        set.headers["set-cookie"] = formatStateCookie(ctx, id, sealed);
        return status(201, { url: url.href });
      },
      {
        body: AcceptByOidc,
        response: { 201: OidcTrialStarted, ...fails(400, 401, 404, 410, 415, 503) },
        detail: operation({
          reads: "public",
          tags,
          operationId: "startInvitationOidc",
          access: "anyone",
          summary: "Start accepting an invitation with a sign-in provider",
          description:
            "Returns the `url` to redirect the browser to. The email address at the provider must be the invited one.",
          security: [],
          example: { token: TOKEN, provider: "acme" },
        }),
      },
    );
