// One user: show, rename, suspend, activate, delete. What a suspended or deleted user had open ends at once (rule ID-12).

import { Elysia, t } from "elysia";
import { conflict, forbidden, invalid } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";
import { setTimersOfOwner } from "#db/engine/timers.ts";
import { deleteAddressesOf } from "#db/known-addresses.ts";
import { deleteFactorsOf } from "#db/second-factors.ts";
import { deleteKeysOf } from "#db/users/api-keys.ts";
import { deleteLinksOf } from "#db/users/external-auth.ts";
import { deleteGitSshKey } from "#db/users/git-ssh-keys.ts";
import { deleteOidcLinksOf } from "#db/users/oidc-links.ts";
import { deleteUserSkillsOf } from "#db/users/skills.ts";
import { deleteUser, isStillOwner, updateUser } from "#db/users/users.ts";
import { isOwner, mayEditProfile, mayManageUser } from "#domain/access.ts";
import { userChanged, userDeleted } from "#domain/users/audit.ts";
import { PREBUILDS_USER_ID } from "#domain/users/first-user.ts";
import { takenOr, USER_NAMES } from "#domain/users/taken.ts";
import { type KnownUser, userPath as params, showKnownUser, userAt } from "#domain/users/user.ts";
import { checkUsername } from "#domain/users/usernames.ts";
import { UpdateProfileRequest, User } from "#schema/user.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { fails, Generic } from "../http/responses.ts";

const tags = ["Users"];
const statusPath = t.Object({
  user: params.properties.user,
  status: t.Union([t.Literal("suspend"), t.Literal("activate")], { description: "suspend or activate" }),
});

/** The user, when the caller may manage them. The built-in account is managed by nobody. */
const managedAt = async (ctx: ApiContext, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await userAt(ctx.store, text, caller);
  if (!mayManageUser(caller, user) || user.id === PREBUILDS_USER_ID) {
    throw forbidden("You may not manage this user.");
  }
  return user;
};

export const oneUser = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .get("/:user", async ({ caller, params }) => showKnownUser(await userAt(ctx.store, params.user, caller)), {
      enrolling: true,
      params,
      response: { 200: User, ...fails(401, 404) },
      detail: { tags, summary: "Get a user" },
    })
    .delete(
      "/:user",
      async ({ caller, params }) => {
        const user = await managedAt(ctx, params.user, caller);
        if (user.id === caller.user_id) throw forbidden("You cannot delete yourself.");
        const now = ctx.clock.now();
        await ctx.store
          .commit([
            ...(isOwner(caller) ? [isStillOwner({ id: caller.user_id })] : []),
            deleteUser({ id: user.id, now }),
            deleteKeysOf({ user_id: user.id, except: "" }),
            deleteAddressesOf(user.id),
            deleteGitSshKey(user.id),
            ...deleteFactorsOf(user.id),
            deleteOidcLinksOf(user.id),
            deleteLinksOf(user.id),
            deleteUserSkillsOf(user.id),
            userDeleted(user, now),
          ])
          .catch((error) => {
            if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
            throw conflict("The user still owns workspaces. Delete those first.");
          });
        ctx.topics.publish("key_gone", user.id, {});
        ctx.topics.publish("shown_changed", user.id, {});
        return { message: "The user has been deleted." };
      },
      {
        user: true,
        params,
        response: { 200: Generic, ...fails(401, 403, 404, 409) },
        detail: { tags, summary: "Delete a user", description: "409 while the user owns workspaces." },
      },
    )
    .put(
      "/:user/profile",
      async ({ caller, params, body }) => {
        const user = await userAt(ctx.store, params.user, caller);
        if (!mayEditProfile(caller, user) || user.id === PREBUILDS_USER_ID) throw forbidden();
        if (body.username.toLowerCase() !== user.username.toLowerCase()) checkUsername(body.username);
        const now = ctx.clock.now();
        const { username } = body;
        const name = body.name?.trim() ?? user.name;
        await ctx.store
          .commit([
            updateUser(user.id, { username, name, updated_at: now }),
            userChanged(user, { username, name }, now),
          ])
          .catch((error) => Promise.reject(takenOr(error, USER_NAMES)));
        ctx.topics.publish("shown_changed", user.id, {});
        return showKnownUser(await userAt(ctx.store, user.id, caller));
      },
      {
        user: true,
        params,
        body: UpdateProfileRequest,
        response: { 200: User, ...fails(400, 401, 403, 404, 409, 415) },
        detail: { tags, summary: "Change a user's profile" },
      },
    )
    .put(
      "/:user/status/:status",
      async ({ caller, params }) => {
        const user = await managedAt(ctx, params.user, caller);
        const isSuspension = params.status === "suspend";
        if (isSuspension && user.id === caller.user_id) throw invalid("You cannot suspend yourself.");
        if (isSuspension && user.roles.includes("owner")) {
          throw invalid("An owner cannot be suspended. Take the role away first.");
        }
        const now = ctx.clock.now();
        const status = isSuspension ? "suspended" : "active";
        // What is so already is no change, and told of by no entry.
        if (user.status === status) return showKnownUser(user);
        await ctx.store.commit([
          updateUser(user.id, { status, updated_at: now }),
          // The workspaces of a suspended user stop (rule TI-16).
          setTimersOfOwner(user.id, "schedule", now),
          userChanged(user, { status }, now),
        ]);
        if (isSuspension) ctx.topics.publish("key_gone", user.id, {});
        return showKnownUser(await userAt(ctx.store, user.id, caller));
      },
      {
        user: true,
        params: statusPath,
        response: { 200: User, ...fails(400, 401, 403, 404) },
        detail: {
          tags,
          summary: "Suspend or activate a user",
          description: "A suspended user cannot sign in; keys stop counting at once and open streams end.",
        },
      },
    );
