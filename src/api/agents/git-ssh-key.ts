// The key pair with which a user's workspaces reach git servers: agents get it whole, people see and renew its public half
// (facts/platform 3.6 and 9.2, rules GK-1 to GK-5). Made on first need, sealed in the store, shown nowhere else.
import { Elysia } from "elysia";
import { rfc3339 } from "#base/clock.ts";
import { forbidden } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { findGitSshKey, type GitSshKeyRow, insertGitSshKey, replaceGitSshKey } from "#db/users/git-ssh-keys.ts";
import { mayManageKeysOf } from "#domain/access.ts";
import { userPath as params, userAt } from "#domain/users/user.ts";
import { AgentGitSshKey, GitSshKey } from "#schema/git-ssh-key.ts";
import { makeSshKeyPair } from "#src/identity/ssh-key.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { fails } from "../http/responses.ts";

const contextOf = (user_id: string): string => `git_ssh_key:${user_id}`;

type Deps = Pick<ApiContext, "store" | "clock" | "encryption">;

const newPair = ({ clock, encryption }: Deps, user_id: string): GitSshKeyRow => {
  const { public_key, private_key } = makeSshKeyPair();
  const now = clock.now();
  return {
    user_id,
    public_key,
    sealed_private_key: encryption.seal(private_key, contextOf(user_id)),
    created_at: now,
    updated_at: now,
  };
};

const told = (made: GitSshKeyRow, before?: GitSshKeyRow): Statement =>
  audited({
    ...{ now: made.updated_at, action: before ? "write" : "create", resource_type: "git_ssh_key" },
    ...{ resource_id: made.user_id, target: made.public_key, before, after: made },
  });

/** The user's pair; made when there is none. Several who need the first one at once get the same. */
const pairOf = async (ctx: Deps, user_id: string): Promise<GitSshKeyRow> => {
  const known = await ctx.store.get(findGitSshKey({ user_id }));
  if (known) return known;
  const made = newPair(ctx, user_id);
  // Of several who make the first pair at once, one does; the others are refused and take that one.
  await ctx.store.commit([{ ...insertGitSshKey(made), expect: 1 }, told(made)]).catch((error) => {
    if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
  });
  return (await ctx.store.get(findGitSshKey({ user_id }))) ?? made;
};

const show = ({ user_id, public_key, created_at, updated_at }: GitSshKeyRow): GitSshKey => ({
  user_id,
  public_key,
  created_at: rfc3339(created_at),
  updated_at: rfc3339(updated_at),
});

/** `GET me/gitsshkey`. */
export const agentGitSshKey = (ctx: ApiContext) =>
  new Elysia().use(callers).get(
    "/me/gitsshkey",
    async ({ caller, set }) => {
      if (caller.api_key_scope === "no_user_data") {
        throw forbidden("This agent may not read personal data of the workspace's owner.");
      }
      set.headers["cache-control"] = "no-store";
      const { public_key, sealed_private_key } = await pairOf(ctx, caller.owner_id);
      return { public_key, private_key: ctx.encryption.open(sealed_private_key, contextOf(caller.owner_id)) };
    },
    {
      agent: true,
      response: { 200: AgentGitSshKey, ...fails(401, 403, 503) },
      detail: {
        tags: ["Agents"],
        summary: "Get the owner's git key pair",
        description: "Ed25519, made on first need. The same for all workspaces of the owner.",
      },
    },
  );

/** `GET` and `PUT users/{user}/gitsshkey`. */
export const userGitSshKey = (ctx: ApiContext) => {
  const userIdAt = async (text: string, caller: UserCaller): Promise<string> => {
    const { id } = await userAt(ctx.store, text, caller);
    if (!mayManageKeysOf(caller, id)) throw forbidden();
    return id;
  };
  return new Elysia()
    .use(callers)
    .get(
      "/:user/gitsshkey",
      async ({ caller, params }) => show(await pairOf(ctx, await userIdAt(params.user, caller))),
      {
        user: true,
        params,
        response: { 200: GitSshKey, ...fails(401, 403, 404, 503) },
        detail: {
          tags: ["Users"],
          summary: "Get a user's public git key",
          description: "Add it to your git server, and every workspace of yours can reach it.",
        },
      },
    )
    .put(
      "/:user/gitsshkey",
      async ({ caller, params }) => {
        const user_id = await userIdAt(params.user, caller);
        const made = newPair(ctx, user_id);
        await ctx.store.commit([replaceGitSshKey(made), told(made, await ctx.store.get(findGitSshKey({ user_id })))]);
        return show(await pairOf(ctx, user_id));
      },
      {
        user: true,
        params,
        response: { 200: GitSshKey, ...fails(401, 403, 404, 503) },
        detail: { tags: ["Users"], summary: "Make a new git key pair", description: "The one before is gone." },
      },
    );
};
