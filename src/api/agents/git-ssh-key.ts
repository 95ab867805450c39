// The SSH key pair that a user's workspaces present to git servers. Agents get the whole pair; users can see and rotate the public key
// (facts/platform 3.6 and 9.2, rules GK-1 to GK-5). The pair is created on first use and stored encrypted.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { forbidden } from "#base/errors.ts";
import type { GitSshKeyRow } from "#db/users/git-ssh-keys.ts";
import { canManageKeys } from "#domain/access.ts";
import { findKeyForSsh, openDeployKey } from "#domain/users/deploy-keys.ts";
import { findUserInPath, userPath as params } from "#domain/users/find.ts";
import { openGitSshKey, readGitSshKey, renewGitSshKey } from "#domain/users/git-ssh-key.ts";
import { AgentGitSshKey, GitSshKey } from "#schema/users/git-ssh-key.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const presentKey = ({ user_id, public_key, created_at, updated_at }: GitSshKeyRow): GitSshKey => ({
  user_id,
  public_key,
  created_at: toRfc3339(created_at),
  updated_at: toRfc3339(updated_at),
});

export const agentGitSshKey = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/me/gitsshkey",
      async ({ caller, query, set }) => {
        if (caller.api_key_scope === "no_user_data") {
          throw forbidden("This agent may not read personal data of the workspace's owner.");
        }
        set.headers["cache-control"] = "no-store";
        const deployKey =
          query.remote === undefined ? undefined : await findKeyForSsh(ctx, caller.owner_id, query.remote);
        if (deployKey) {
          return {
            public_key: deployKey.public_key,
            private_key: openDeployKey(ctx, deployKey),
            is_deploy_key: true as const,
          };
        }
        const key = await readGitSshKey(ctx, caller.owner_id);
        return { public_key: key.public_key, private_key: openGitSshKey(ctx, key) };
      },
      {
        agent: true,
        query: t.Object({
          remote: t.Optional(
            t.String({
              maxLength: 4_096,
              description: "The URL that Git connects to, such as `ssh://github.com/acme/app.git`.",
            }),
          ),
        }),
        response: { 200: AgentGitSshKey, ...fails(401, 403, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "getAgentGitSshKey",
          access: "agent",
          summary: "Get the owner's Git key pair",
          description:
            "Returns an Ed25519 key pair, which is created on first use and shared by all workspaces of the owner. If the owner has a deploy key for `remote`, returns the deploy key.",
          placement: "token",
        }),
      },
    );

export const userGitSshKey = (ctx: ApiContext) => {
  const findKeyOwnerId = async (userParam: string, caller: UserCaller): Promise<string> => {
    const { id } = await findUserInPath(ctx.store, userParam, caller);
    if (!canManageKeys(caller, id)) throw forbidden();
    return id;
  };
  return routes()
    .use(callers)
    .get(
      "/:user/gitsshkey",
      async ({ caller, params }) => presentKey(await readGitSshKey(ctx, await findKeyOwnerId(params.user, caller))),
      {
        user: true,
        params,
        response: { 200: GitSshKey, ...fails(401, 403, 404, 503) },
        detail: operation({
          tags: ["Users"],
          operationId: "getGitSshKey",
          summary: "Get a user's public Git key",
          description: "Returns the public key. Add it to your Git server to give your workspaces access.",
          access: "owner",
          scope: "user:read_personal",
        }),
      },
    )
    .put(
      "/:user/gitsshkey",
      async ({ caller, params }) => presentKey(await renewGitSshKey(ctx, await findKeyOwnerId(params.user, caller))),
      {
        user: true,
        params,
        response: { 200: GitSshKey, ...fails(401, 403, 404, 503) },
        detail: operation({
          tags: ["Users"],
          operationId: "regenerateGitSshKey",
          summary: "Regenerate a user's Git key pair",
          description: "Replaces the Git key pair. The previous key pair is deleted.",
          audit: target.writes(target.gitSshKey),
          access: "owner",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    );
};
