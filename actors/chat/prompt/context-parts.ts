// History entries about a chat's context: the pinned instruction files and skills of its workspace, as parts that people see (specification
// "Message part", rule CX-14). Models do not see these entries, because context-blocks.ts gives them the text.
import { sha256 } from "#base/ids.ts";
import { findChatContext, findSnapshot } from "#db/chats/context.ts";
import { findContextRow } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { NewMessage } from "../machine/decision.ts";

/**
 * Returns the row to add to the chat's history; no row if no context is pinned, or the context is empty or unchanged. `chat`: the chat's
 * key.
 */
export const buildContextRows = async (store: Pick<Store, "get">, chat: number): Promise<NewMessage[]> => {
  const pin = await store.get(findChatContext({ chat }));
  if (!pin) return [];
  const snapshot = await store.get(findSnapshot({ id: pin.snapshot }));
  const content = toParts(snapshot?.resources ?? [], pin.agent_id);
  const previous = (await store.get(findContextRow({ chat })))?.content ?? [];
  if (Bun.deepEquals(previous, content)) return [];
  if (content.length === 0) return [];
  return [
    {
      role: "system",
      visibility: "user",
      content,
      created_by: null,
      model_config_id: null,
      usage: null,
      replayed: null,
    },
  ];
};

/** Returns files first, then skills, each in the order of the workspace. Pure. */
export const toParts = (resources: readonly StoredResource[], agent_id: string): MessagePart[] => {
  const used = resources.filter(({ status }) => status === "ok");
  const files = used.flatMap(({ kind, source, body = "", truncated }): MessagePart[] =>
    kind === "instruction_file"
      ? [
          {
            type: "context-file",
            context_file_path: source,
            context_file_agent_id: agent_id,
            ...(truncated ? { context_file_truncated: true } : {}),
            context_file_hash: sha256(body),
          },
        ]
      : [],
  );
  const skills = used.flatMap(({ kind, source, skill_name, skill_description = "" }): MessagePart[] =>
    kind === "skill" && skill_name ? [{ type: "skill", skill_name, skill_description, skill_dir: source }] : [],
  );
  return [...files, ...skills];
};
