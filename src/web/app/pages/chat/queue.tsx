// Messages that wait for the turn to end. They can be sent now, moved, edited or discarded.
import type { QueuedMessage } from "#schema/chats/chat.ts";
import { call, Problem } from "../../data/api.ts";
import { IconButton } from "../../parts/button.tsx";
import { getDraft, joinDrafts, setDraft, toDraft, toInput } from "./draft.ts";
import type { LiveChat } from "./live-chat.ts";
import { toText } from "./message.tsx";

const removeQueued = (chat: LiveChat, queued: number): Promise<void> =>
  call("DELETE /chats/:chat/queue/:queued", { path: { chat: chat.id, queued } });

/**
 * Moves a message up by one. The API only appends, so all messages behind it are re-added first and then removed; nothing is lost if this
 * is interrupted. If a message has been sent in the meantime, its new copy is removed instead.
 */
const moveUp = async (chat: LiveChat, queue: readonly QueuedMessage[], at: number): Promise<void> => {
  const moved = [queue[at - 1], ...queue.slice(at + 1)].filter((one) => one !== undefined);
  for (const one of moved) {
    const body = {
      content: toInput(one.content),
      ...(one.model_config_id ? { model_config_id: one.model_config_id } : {}),
    };
    const { queued_message } = await call("POST /chats/:chat/messages", { path: { chat: chat.id }, body });
    await removeQueued(chat, one.id).catch(async (error) => {
      if (!(error instanceof Problem) || !queued_message) throw error;
      await removeQueued(chat, queued_message.id);
    });
  }
};

export const Queue = ({ chat }: { chat: LiveChat }) => {
  const { queue } = chat.picture.value;
  if (queue.length === 0) return null;
  const editQueued = async (one: QueuedMessage): Promise<void> => {
    await removeQueued(chat, one.id);
    // The draft is read only now, because it can change during the request.
    setDraft(chat.id, joinDrafts(toDraft(one.content), getDraft(chat.id).value));
  };
  return (
    <ol class="queue" aria-label="Queued messages">
      {queue.map((one, at) => {
        const text = toText(one.content) || "Files";
        return (
          <li key={one.id}>
            <span class="clip grow">{text}</span>
            <span class="push line">
              {at > 0 && (
                <IconButton icon="chev" class="upward" small label="Move up" onPress={() => moveUp(chat, queue, at)} />
              )}
              <IconButton icon="pen" small label="Take back and edit" onPress={() => editQueued(one)} />
              <IconButton
                icon="up"
                small
                label="Send now"
                onPress={() =>
                  call("POST /chats/:chat/queue/:queued/promote", { path: { chat: chat.id, queued: one.id } })
                }
              />
              <IconButton icon="x" small label="Remove from queue" onPress={() => removeQueued(chat, one.id)} />
            </span>
          </li>
        );
      })}
    </ol>
  );
};
