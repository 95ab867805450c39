// Collects the secrets a chat's tools may encounter and must hide from models and people: the secrets of its owner and its workspace. Read
// for each step of a turn and not cached.
import { listTokenHashes } from "#db/agents/tokens.ts";
import { listKeyHashes } from "#db/users/api-keys.ts";
import { findWorkspacePlace } from "#db/workspaces/workspaces.ts";
import type { ChatSecrets } from "#src/tools/mask.ts";
import { makeChatToken } from "../ai/chat-token.ts";
import { makeWorkspaceToken } from "../ai/workspace-token.ts";
import type { DomainContext } from "../context.ts";
import { openSecrets } from "../users/secrets.ts";

type SecretScope = { readonly chat_id: string; readonly owner_id: string; readonly workspace_id: string | null };
type Deps = Pick<DomainContext, "store" | "links" | "modelSettings" | "encryption">;

export const loadKnownSecrets = async (
  { store, links, modelSettings, encryption }: Deps,
  of: SecretScope,
): Promise<ChatSecrets> => {
  const { chat_id, owner_id, workspace_id } = of;
  const workspace = workspace_id === null ? undefined : await store.get(findWorkspacePlace({ id: workspace_id }));
  // A shared workspace has the linked accounts of its own owner.
  const people = [...new Set([owner_id, ...(workspace ? [workspace.owner_id] : [])])];
  const [keys, tokens, linked, providers, kept] = await Promise.all([
    Promise.all(people.map((user_id) => store.all(listKeyHashes({ user_id })))),
    workspace_id === null ? [] : store.all(listTokenHashes({ workspace_id })),
    Promise.all(people.map((user_id) => links.listSecrets(user_id))),
    modelSettings.keys(),
    Promise.all(people.map((user_id) => openSecrets({ store, encryption }, user_id))),
  ]);
  return {
    texts: [
      ...kept.flat().map(({ value }) => value),
      ...linked.flat(),
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
