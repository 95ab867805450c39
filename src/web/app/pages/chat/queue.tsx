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
const moveUp = async (chat: LiveChat, queue: readonly QueuedMessage[], index: number): Promise<void> => {
  const messagesBehind = [queue[index - 1], ...queue.slice(index + 1)].filter((one) => one !== undefined);
  for (const message of messagesBehind) {
    const body = {
      content: toInput(message.content),
      ...(message.model_config_id ? { model_config_id: message.model_config_id } : {}),
    };
    const { queued_message } = await call("POST /chats/:chat/messages", { path: { chat: chat.id }, body });
    await removeQueued(chat, message.id).catch(async (error) => {
      if (!(error instanceof Problem) || !queued_message) throw error;
      await removeQueued(chat, queued_message.id);
    });
  }
};

export const Queue = ({ chat }: { chat: LiveChat }) => {
  const { queue } = chat.state.value;
  if (queue.length === 0) return null;
  const editQueued = async (message: QueuedMessage): Promise<void> => {
    await removeQueued(chat, message.id);
    // The draft is read only now, because it can change during the request.
    setDraft(chat.id, joinDrafts(toDraft(message.content), getDraft(chat.id).value));
  };
  return (
    <ol class="queue" aria-label="Queued messages">
      {queue.map((one, index) => {
        const text = toText(one.content) || "Files";
        return (
          <li key={one.id}>
            <span class="clip grow">{text}</span>
            <span class="push line">
              {index > 0 && (
                <IconButton
                  icon="chev"
                  class="upward"
                  small
                  label="Move up"
                  onPress={() => moveUp(chat, queue, index)}
                />
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
