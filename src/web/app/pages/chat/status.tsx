// The status of the chat: errors and retries below the messages, current activity below the composer.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { CHAT_STATUS_LABELS } from "#schema/chats/chat-status-words.ts";
import { connection } from "../../data/live-socket.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { State } from "../../parts/state.tsx";
import { sendText } from "./actions.ts";
import type { LiveChat } from "./live-chat.ts";
import type { ChatState } from "./picture.ts";

/** Shown below the last message. */
export const ChatProblems = ({ chat, isOwner }: { chat: LiveChat; isOwner: boolean }) => {
  const { error, retry, warnings, waitsForSlot, actionRequired } = chat.state.value;
  return (
    <>
      {retry && <Retry retry={retry} />}
      {waitsForSlot && (
        <p class="cut-line" role="status">
          Waiting for a slot: other chats are running. This one starts automatically.
        </p>
      )}
      {!waitsForSlot &&
        warnings.map((text) => (
          <p key={text} class="cut-line" role="status">
            {text}
          </p>
        ))}
      {actionRequired && actionRequired.kind === undefined && (
        <p class="cut-line" role="status">
          Waiting for the client that created this chat to run{" "}
          {actionRequired.tool_calls.map(({ tool_name }) => tool_name).join(", ")}.
        </p>
      )}
      {error && (
        <div class="ask bad" role="alert">
          <div class="line">
            <span class="t-bad">
              <Icon name="warn" />
            </span>
            <h3>{error.message}</h3>
          </div>
          {error.detail && <p class="small mut wrap-any">{error.detail}</p>}
          <p class="small mut">The answer so far is kept.</p>
          {isOwner && (
            <div class="line">
              <Button onPress={() => sendText(chat, "Continue.")}>
                {error.retryable ? "Try again" : "Continue anyway"}
              </Button>
            </div>
          )}
        </div>
      )}
    </>
  );
};

const Retry = ({ retry }: { retry: NonNullable<ChatState["retry"]> }) => {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now();
    }, 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.ceil((Date.parse(retry.retrying_at) - now.value) / 1000);
  return (
    <div class="ask" role="status">
      <div class="line">
        <span class="t-attn">
          <Icon name="clock" />
        </span>
        <span>{retry.error}</span>
        <span class="push dim small num">
          {seconds > 0 ? `Retrying in ${seconds} s (attempt ${retry.attempt})` : `Retrying (attempt ${retry.attempt})`}
        </span>
      </div>
    </div>
  );
};

const formatStatus = ({ status, actionRequired, live, liveResults }: ChatState): string => {
  switch (status) {
    case undefined:
      return "";
    case "waiting":
      return "";
    case "error":
    case "interrupting":
      return CHAT_STATUS_LABELS[status].replace(/^./, (first) => first.toUpperCase());
    case "requires_action":
      if (actionRequired?.kind === "budget") return "Waiting for a budget";
      return actionRequired?.kind === "permission" ? "Waiting for your approval" : "Waiting for a client";
    case "running":
      if (liveResults.size > 0) return "Working";
      if (live.at(-1)?.type === "reasoning") return "Thinking";
      return live.length > 0 ? "Writing" : "Waiting for the model";
  }
};

/** Shown below the composer. */
export const StatusLine = ({ chat }: { chat: LiveChat }) => {
  const state = chat.state.value;
  // The chat's activity is unknown while the server is unreachable.
  const isDisconnected = connection.value.state === "cut";
  const text = isDisconnected ? "Not connected" : state.waitsForSlot ? "Waiting for a slot" : formatStatus(state);
  const kind = isDisconnected
    ? "stopped"
    : state.status === "error"
      ? "failed"
      : state.status === "requires_action"
        ? "needs"
        : "busy";
  return (
    <div class="status">
      <span class="line" role="status">
        {text !== "" && <State kind={kind}>{text}</State>}
      </span>
    </div>
  );
};
