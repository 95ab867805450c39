// The desktop of the chat's workspace, started when it is first opened.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { loadCode } from "../../data/load-code.ts";
import { copyText } from "../../parts/as-command.tsx";
import { Button } from "../../parts/button.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";
import type { DesktopSession } from "./desktop-session.ts";

type State = "connecting" | "open" | "closed";

/** A WebSocket does not report why it was refused; the same request over HTTP does. */
const loadRefusalReason = async (address: string): Promise<string> => {
  const response = await fetch(address).catch(() => undefined);
  if (!response) return "The server cannot be reached.";
  const { message = "", detail = "" } = (await response.json().catch(() => ({}))) as Record<string, string>;
  return response.status === 409 || response.status === 400 ? [message, detail].filter(Boolean).join(" ") : "";
};

export const Desktop = ({ chat, isOwner }: { chat: string; isOwner: boolean }) => {
  const box = useRef<HTMLDivElement>(null);
  const session = useRef<DesktopSession>(undefined);
  const state = useSignal<State>("connecting");
  const reason = useSignal("");
  const attempt = useSignal(0);
  useEffect(() => {
    const address = `/api/experimental/chats/${chat}/stream/desktop`;
    let isUnmounted = false;
    let wasOpen = false;
    const open = async (): Promise<void> => {
      const { openDesktop } = await loadCode(() => import("./desktop-session.ts"));
      if (isUnmounted || !box.current) return;
      session.current = openDesktop(box.current, address, {
        viewOnly: !isOwner,
        onOpen: () => {
          wasOpen = true;
          state.value = "open";
          session.current?.focus();
        },
        onClose: () => {
          state.value = "closed";
          reason.value = wasOpen ? "The connection was lost, or the workspace stopped." : "";
          const showReason = (text: string): void => {
            if (!isUnmounted) reason.value = text;
          };
          if (!wasOpen) void loadRefusalReason(address).then(showReason);
        },
        onCopy: (text) => showToast("Copied on the desktop", { label: "Copy to clipboard", act: () => copyText(text) }),
      });
    };
    state.value = "connecting";
    open().catch(showError);
    return () => {
      isUnmounted = true;
      session.current?.end();
      session.current = undefined;
    };
  }, [chat, isOwner, attempt.value]);
  const sendClipboard = async (): Promise<void> => {
    session.current?.paste(await navigator.clipboard.readText());
    showToast("Clipboard sent to the desktop");
  };
  return (
    <div class="desktop">
      <div class="line pad">
        <span class="small mut" role="status">
          {state.value === "connecting" ? "Connecting" : state.value === "open" ? "" : "No desktop is running."}
        </span>
        <span class="push line">
          {state.value === "open" && isOwner && navigator.clipboard && (
            <Button small onPress={sendClipboard}>
              Paste
            </Button>
          )}
          {state.value === "closed" && (
            <Button
              small
              onPress={() => {
                attempt.value += 1;
              }}
            >
              Try again
            </Button>
          )}
        </span>
      </div>
      {reason.value !== "" && state.value === "closed" && <p class="pad mut wrap-any">{reason.value}</p>}
      <div ref={box} class="screen" hidden={state.value === "closed"} />
    </div>
  );
};
