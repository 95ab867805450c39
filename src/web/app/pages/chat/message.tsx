// One message of the history, or the answer that is being written.
import { useSignal } from "@preact/signals";
import { memo } from "preact/compat";
import { useLocation } from "preact-iso/router";
import type { ChatMessage } from "#schema/chats/chat.ts";
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import { copyText } from "../../parts/as-command.tsx";
import { IconButton } from "../../parts/button.tsx";
import { Fold } from "../../parts/fold.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { confirmFork } from "./actions.ts";
import { EditMessage } from "./edit.tsx";
import type { LiveChat } from "./live-chat.ts";
import { Markdown } from "./markdown.tsx";
import { Tool } from "./tool.tsx";

type Props = { readonly chat: LiveChat; readonly message: ChatMessage; readonly isOwner: boolean };

export const toText = (content: readonly ChatMessagePart[]): string =>
  content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");

export const Message = memo(({ chat, message, isOwner }: Props) =>
  message.role === "user" ? (
    <UserMessage chat={chat} message={message} isOwner={isOwner} />
  ) : (
    <Parts chat={chat} parts={message.content} isLive={false} />
  ),
);

/** The unfinished answer. */
export const LiveAnswer = ({ chat }: { chat: LiveChat }) =>
  chat.live.value.length === 0 ? null : <Parts chat={chat} parts={chat.live.value} isLive />;

const UserMessage = ({ chat, message, isOwner }: Props) => {
  const { route } = useLocation();
  const isEditing = useSignal(false);
  const text = toText(message.content);
  if (isEditing.value) {
    return <EditMessage chat={chat} message={message} text={text} close={setTo(isEditing, false)} />;
  }
  return (
    <div class="user-message">
      <div class="user-text">
        {message.content.map((part, index) => (
          <UserMessagePart key={index} part={part} />
        ))}
      </div>
      <div class="user-message-actions">
        <IconButton icon="copy" small label="Copy message" onPress={() => copyText(text)} />
        {isOwner && (
          <>
            <IconButton
              icon="branch"
              small
              label="Fork the chat from here"
              onPress={() => confirmFork(chat.id, route, message.id)}
            />
            <IconButton icon="pen" small label="Edit message" onPress={setTo(isEditing, true)} />
          </>
        )}
      </div>
    </div>
  );
};

const UserMessagePart = ({ part }: { part: ChatMessagePart }) => {
  switch (part.type) {
    case "text":
      return <p class="pre">{part.text}</p>;
    case "file":
      return <FilePart part={part} />;
    case "file-reference":
      return (
        <div class="reference">
          <span class="badge">
            <Icon name="file" />
            <span class="mono">
              {part.file_name}:{part.start_line}
            </span>
          </span>
          {part.content && <pre class="mono">{part.content}</pre>}
        </div>
      );
    default:
      return null;
  }
};

const toFileId = ({ file_id }: ChatMessagePart): string =>
  typeof file_id === "string" ? file_id : (file_id?.uuid ?? "");

const FilePart = ({ part }: { part: ChatMessagePart }) => {
  const address = `/api/v2/chats/files/${toFileId(part)}`;
  const name = part.name || "file";
  if (part.media_type?.startsWith("image/")) {
    return (
      <a href={address} target="_blank" rel="noreferrer">
        <img class="shot" src={address} alt={name} loading="lazy" />
      </a>
    );
  }
  return (
    <a class="badge" href={address} target="_blank" rel="noreferrer">
      <Icon name="file" />
      {name}
    </a>
  );
};

const Parts = ({ chat, parts, isLive }: { chat: LiveChat; parts: readonly ChatMessagePart[]; isLive: boolean }) => (
  <>
    {parts.map((part, index) => (
      <Part key={part.tool_call_id ?? index} chat={chat} part={part} isLive={isLive && index === parts.length - 1} />
    ))}
  </>
);

const Part = memo(({ chat, part, isLive }: { chat: LiveChat; part: ChatMessagePart; isLive: boolean }) => {
  switch (part.type) {
    case "text":
      return part.text?.trim() ? (
        <div class={isLive ? "prose writing" : "prose"}>
          <Markdown text={part.text} isLive={isLive} />
        </div>
      ) : null;
    case "reasoning":
      return <Reasoning part={part} isLive={isLive} />;
    case "tool-call":
      return <Tool chat={chat} part={part} isLive={isLive} />;
    case "source":
      return (
        <p class="small">
          <Icon name="globe" small />{" "}
          <a href={/^https?:/.test(part.url ?? "") ? part.url : undefined} target="_blank" rel="noreferrer noopener">
            {part.title || part.url}
          </a>
        </p>
      );
    case "file":
      return <FilePart part={part} />;
    case "hook-notice":
      return <p class="small mut">{part.text}</p>;
    default:
      return null;
  }
});

const Reasoning = ({ part, isLive }: { part: ChatMessagePart; isLive: boolean }) => {
  const { created_at, completed_at, text = "" } = part;
  if (text.trim() === "" && !isLive) return null;
  const durationMs = created_at && completed_at ? Date.parse(completed_at) - Date.parse(created_at) : undefined;
  return (
    <Fold
      summary={
        isLive
          ? "Thinking…"
          : durationMs !== undefined && durationMs >= 1_000
            ? `Thought for ${formatDuration(durationMs)}`
            : "Thought"
      }
    >
      <div class="prose">
        <Markdown text={text} isLive={isLive} />
      </div>
    </Fold>
  );
};
