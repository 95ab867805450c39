// Signing in and out: the session token, and the cookie that carries it for browsers (rules ID-3 to ID-7).
import { Elysia, t } from "elysia";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { deleteKey } from "#db/api-keys.ts";
import { audited } from "#db/audit.ts";
import type { Statement } from "#db/sql.ts";
import { CommitError } from "#db/store.ts";
import { findUserByEmail, isPasswordStill, touchUser, type User as UserRow } from "#db/users.ts";
import { LoginRequest } from "#schema/user.ts";
import { ownParser, parsePublicJson } from "../body.ts";
import { callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { SESSION_COOKIE } from "../identify.ts";
import { fails, Generic } from "../responses.ts";
import { wokenUp } from "./audit.ts";
import { LOGIN_SECONDS, newKey } from "./keys.ts";
import { isKnownAddress, rememberedAddress } from "./known-address.ts";

const tags = ["Users"];

/** The cookie lives as long as browsers keep it; how long its key counts is decided here, not there. */
const COOKIE_SECONDS = 30 * 86_400;

const cookieOf = (ctx: ApiContext, token: string): string =>
  `${SESSION_COOKIE}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${token === "" ? 0 : COOKIE_SECONDS}${
    ctx.accessUrl.protocol === "https:" ? "; Secure" : ""
  }`;

const incorrect = (): AppError => new AppError("unauthenticated", "Incorrect email or password.");

/** A sign-in of somebody we know, or a try of one (rule AU-6). */
const signIn = ({ id, username }: UserRow, now: number, status_code: number): Statement =>
  audited({ now, action: "login", resource_type: "api_key", target: username, user_id: id, status_code });

const isStale = (error: unknown): boolean => error instanceof CommitError && error.reason === "stale";

export const session = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .post(
      "/login",
      async ({ body, request, set, status }) => {
        const { store, clock, accounts } = ctx;
        const address = ctx.addresses.of(request);
        const isKnown = await isKnownAddress(ctx, body.email, address);
        const guess = accounts.countGuess({ address, account: body.email, isKnown });
        const user = await store.get(findUserByEmail({ email: body.email }));
        const isRight = await guess.verify(body.password, user?.password_hash);
        if (!user) throw incorrect();
        if (!isRight || user.status === "suspended") {
          // Not waited for: how long the answer takes must not tell whether there is such an account.
          store.commit([signIn(user, clock.now(), 401)]).catch((error) => {
            log("http").warn("a failed sign-in could not be noted: {error}", { error });
          });
        }
        if (!isRight) throw incorrect();
        if (user.status === "suspended") {
          throw new AppError("unauthenticated", "This account is suspended. Ask an administrator to activate it.");
        }
        const now = clock.now();
        const { token, statement } = newKey({
          ...{ user_id: user.id, login_type: "password", lifetime_seconds: LOGIN_SECONDS, now },
        });
        const { id, password_hash } = user;
        await store
          .commit([
            isPasswordStill({ id, password_hash }),
            statement,
            touchUser({ id, now }),
            ...rememberedAddress(id, address, now),
            signIn(user, now, 201),
            ...wokenUp(user, now),
          ])
          .catch((error) => Promise.reject(isStale(error) ? incorrect() : error));
        set.headers["set-cookie"] = cookieOf(ctx, token);
        return status(201, { session_token: token });
      },
      {
        parse: ownParser("/api/v2/users/login", parsePublicJson),
        body: LoginRequest,
        response: {
          201: t.Object({ session_token: t.String({ description: "Send it in the header Service-Session-Token." }) }),
          ...fails(400, 401, 415, 429, 503),
        },
        detail: {
          tags,
          summary: "Sign in with a password",
          description: "Also sets a cookie for browsers. Counts 24 hours from its last use.",
          security: [],
        },
      },
    )
    .post(
      "/logout",
      async ({ caller, set }) => {
        const { user_id, username, key_id } = caller;
        const now = ctx.clock.now();
        await ctx.store.commit([
          deleteKey(key_id),
          audited({ now, action: "logout", resource_type: "api_key", target: username, user_id }),
        ]);
        ctx.topics.publish("key_gone", caller.key_id, {});
        set.headers["set-cookie"] = cookieOf(ctx, "");
        return { message: "You are signed out." };
      },
      {
        user: true,
        response: { 200: Generic, ...fails(401) },
        detail: { tags, summary: "Sign out", description: "Deletes the key this request was made with." },
      },
    );
