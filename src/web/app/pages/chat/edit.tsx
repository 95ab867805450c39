// Editing of an earlier message: later messages are removed, and the workspace's files can be restored.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ChatMessage } from "#schema/chats/chat.ts";
import { call } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { Switch } from "../../parts/field.tsx";
import { writeTextTo, writeTo } from "../../parts/handlers.ts";
import { showError, showToast } from "../../shell/toasts.tsx";
import { toInput } from "./draft.ts";
import type { LiveChat } from "./live-chat.ts";

type EditProps = {
  readonly chat: LiveChat;
  readonly message: ChatMessage;
  readonly text: string;
  readonly close: () => void;
};

export const EditMessage = ({ chat, message, text, close }: EditProps) => {
  const editedText = useSignal(text);
  const restoresFiles = useSignal(false);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus(), []);
  const save = async (): Promise<void> => {
    // Attachments are kept.
    const attachments = toInput(message.content).filter(({ type }) => type !== "text");
    const { warnings } = await call("PATCH /chats/:chat/messages/:message", {
      path: { chat: chat.id, message: message.id },
      body: { content: [{ type: "text", text: editedText.value }, ...attachments], restore_files: restoresFiles.value },
    });
    for (const warning of warnings) showToast(warning);
    close();
  };
  return (
    <div class="composer edit" role="group" aria-label="Edit message">
      <textarea
        ref={area}
        rows={3}
        aria-label="Message"
        value={editedText.value}
        onInput={writeTextTo(editedText)}
        onKeyDown={(event) => {
          if (event.key === "Escape") close();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save().catch(showError);
        }}
      />
      <div class="pad">
        <Switch
          label="Restore files"
          note="To their state when this was sent. Commits are kept."
          checked={restoresFiles.value}
          disabled={!chat.chat.value?.workspace_id}
          onSwitch={writeTo(restoresFiles)}
        />
      </div>
      <div class="tools">
        <span class="small mut">Removes all later messages from the chat.</span>
        <span class="push line">
          <Button small look="ghost" onPress={close}>
            Cancel
          </Button>
          <Button small look="primary" disabled={editedText.value.trim() === ""} onPress={save}>
            Send again
          </Button>
        </span>
      </div>
    </div>
  );
};
