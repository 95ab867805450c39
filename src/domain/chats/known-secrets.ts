// Collects the secrets a chat's tools may encounter and must hide from models and people: the secrets of its owner and its workspace. Read
// for each step of a turn and not cached.
import { UnsealError } from "#base/encryption.ts";
import { listTokenHashes } from "#db/agents/tokens.ts";
import { loadSensitiveValues } from "#db/templates/variables.ts";
import { listKeyHashes } from "#db/users/api-keys.ts";
import { listDeployKeys } from "#db/users/deploy-keys.ts";
import { findGitSshKey } from "#db/users/git-ssh-keys.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { ChatSecrets } from "#src/tools/mask.ts";
import { makeChatToken } from "../ai/chat-token.ts";
import { makeWorkspaceToken } from "../ai/workspace-token.ts";
import type { DomainContext } from "../context.ts";
import { openDeployKey } from "../users/deploy-keys.ts";
import { openGitSshKey } from "../users/git-ssh-key.ts";
import { openSecrets } from "../users/secrets.ts";

type SecretScope = { readonly chat_id: string; readonly owner_id: string; readonly workspace_id: string | null };
type Deps = Pick<DomainContext, "store" | "links" | "modelSettings" | "encryption">;

export const loadKnownSecrets = async (deps: Deps, scope: SecretScope): Promise<ChatSecrets> => {
  const { store, links, modelSettings, encryption } = deps;
  const { chat_id, owner_id, workspace_id } = scope;
  const workspace = workspace_id === null ? undefined : await store.get(findWorkspaceAccessRow({ id: workspace_id }));
  // A shared workspace has the linked accounts of its own owner.
  const userIds = [...new Set([owner_id, ...(workspace ? [workspace.owner_id] : [])])];
  const [keys, tokens, accountTokens, providers, savedSecrets, ssh, variables] = await Promise.all([
    Promise.all(userIds.map((user_id) => store.all(listKeyHashes({ user_id })))),
    workspace_id === null ? [] : store.all(listTokenHashes({ workspace_id })),
    Promise.all(userIds.map((user_id) => links.listSecrets(user_id))),
    modelSettings.keys(),
    Promise.all(userIds.map((user_id) => openSecrets({ store, encryption }, user_id))),
    workspace === undefined ? [] : listSshKeys(deps, workspace.owner_id),
    workspace_id === null ? [] : loadSensitiveValues(store, encryption, workspace_id).catch(omitUnreadable),
  ]);
  return {
    texts: [
      ...savedSecrets.flat().map(({ value }) => value),
      ...ssh,
      ...variables,
      ...accountTokens.flat(),
      ...providers,
      ...tokens.flatMap(({ id }) => [
        makeWorkspaceToken(encryption, id),
        makeChatToken(encryption, { agent_id: id, chat_id, owner_id }),
      ]),
    ],
    agent_tokens: new Set(tokens.flatMap(({ token_hash }) => (token_hash === null ? [] : [token_hash]))),
    keys: new Map(keys.flat().map(({ id, secret_hash }) => [id, secret_hash])),
  };
};

/** A secret that cannot be decrypted is in no workspace. */
const omitUnreadable = (error: unknown): [] => {
  if (error instanceof UnsealError) return [];
  throw error;
};

/** Returns the private keys that workspaces of this user get for Git. */
const listSshKeys = async (deps: Deps, user_id: string): Promise<string[]> => {
  const openIfPossible = (open: () => string): string[] => {
    try {
      return [open()];
    } catch (error) {
      return omitUnreadable(error);
    }
  };
  const deploy = await deps.store.all(listDeployKeys({ user_id }));
  const pair = await deps.store.get(findGitSshKey({ user_id }));
  return [
    ...(pair ? openIfPossible(() => openGitSshKey(deps, pair)) : []),
    ...deploy.flatMap((row) => openIfPossible(() => openDeployKey(deps, row))),
  ];
};
