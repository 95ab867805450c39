// A terminal component. The same terminal ID attaches to the same terminal, even after the page was closed.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call, Problem } from "../../data/api.ts";
import { loadCode } from "../../data/load-code.ts";
import { showError } from "../../shell/toasts.tsx";
import { Icon } from "../icon.tsx";
import type { Modifier } from "./terminal-keys.ts";
import type { TerminalSession, TerminalState } from "./terminal-session.ts";

type TerminalProps = {
  readonly agent_id: string;
  readonly terminalId: string;
  readonly command?: string;
  readonly label: string;
  readonly onTitle?: (title: string) => void;
  /** Receives the session, for search and input. */
  readonly onSession?: (session: TerminalSession | undefined) => void;
  readonly onState?: (state: TerminalState) => void;
  readonly onSize?: (columns: number, rows: number) => void;
  readonly onFocus?: () => void;
  readonly onKey?: (event: KeyboardEvent) => boolean;
  readonly onModifier?: (modifier: Modifier | undefined) => void;
  readonly fontSize?: number;
  /** The surrounding page explains which key leaves the terminal. */
  readonly hasLeaveHint?: boolean;
  /** Actions shown when the terminal has ended. */
  readonly endedActions?: ComponentChildren;
};

/** Returns a UUID. Works without HTTPS, where browsers lack crypto.randomUUID. */
export const generateId = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 15) | 64;
  bytes[8] = ((bytes[8] ?? 0) & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
};

/** Returns the ID of the terminal that this browser last opened in the agent, or a new one. */
export const getLastTerminalId = (agent_id: string): string => {
  const key = `terminal ${agent_id}`;
  const id = sessionStorage.getItem(key) ?? generateId();
  sessionStorage.setItem(key, id);
  return id;
};

/** `gone`: there is nothing to connect to. */
type ShownState = TerminalState | "gone";

/** A separate request, because a refused WebSocket does not report why. */
const isAgentUnavailable = async (agent_id: string): Promise<boolean> => {
  const path = { workspaceagent: agent_id };
  const error: unknown = await call("GET /workspaceagents/:workspaceagent", { path }).catch((error) => error);
  return error instanceof Problem && [400, 403, 404, 410].includes(error.status);
};

/** Tab and Escape go to the program. Alt-Shift-Up and Alt-Shift-Down move the focus to the elements before and after the terminal. */
const moveFocus = ({ type, altKey, shiftKey, ctrlKey, key }: KeyboardEvent, box: HTMLElement): boolean => {
  const movesUp = key === "ArrowUp";
  if (type !== "keydown" || !altKey || !shiftKey || ctrlKey || !(movesUp || key === "ArrowDown")) return false;
  const side = movesUp ? Node.DOCUMENT_POSITION_PRECEDING : Node.DOCUMENT_POSITION_FOLLOWING;
  const focusable = [
    ...document.querySelectorAll<HTMLElement>("a[href], button:enabled, input:enabled, select, textarea"),
  ];
  const candidates = focusable.filter((one) => box.compareDocumentPosition(one) === side && one.checkVisibility());
  (movesUp ? candidates.at(-1) : (candidates[0] ?? document.getElementById("main")))?.focus();
  return true;
};

/** Shown because Tab does not move the focus out of the terminal. */
const LEAVE_HINT = "Press Alt+Shift+Up or Down to leave the terminal.";

const STATE_TEXTS: Partial<Record<ShownState, string>> = {
  connecting: "Connecting",
  cut: "Connection lost. Reconnecting… Your programs keep running.",
  ended: "The terminal has closed.",
  gone: "Can't connect: the workspace was deleted or rebuilt, or is no longer shared with you.",
};

export const TerminalBox = (props: TerminalProps) => {
  const { agent_id, terminalId, command, label, onSession, onState, fontSize, endedActions } = props;
  const { hasLeaveHint, onTitle, onSize, onFocus, onKey, onModifier } = props;
  const box = useRef<HTMLDivElement>(null);
  const state = useSignal<ShownState>("connecting");
  const reason = useSignal("");
  useEffect(() => {
    let session: TerminalSession | undefined;
    let hasEnded = false;
    const openSession = async (): Promise<void> => {
      const { TerminalSession } = await loadCode(() => import("./terminal-session.ts"));
      const element = box.current;
      if (hasEnded || !element) return;
      session = new TerminalSession({
        box: element,
        agent_id,
        terminalId,
        command,
        fontSize,
        onTitle,
        onSize,
        onFocus,
        onKey: (event) => !moveFocus(event, element) && (onKey?.(event) ?? true),
        onModifier,
        onState: (next, nextReason) => {
          // The latest attempt has failed as well.
          if (next === "cut" && state.value !== "open")
            void isAgentUnavailable(agent_id).then((isUnavailable) => isUnavailable && endSession());
          state.value = next;
          reason.value = nextReason;
          onState?.(next);
        },
      });
      session.terminal.textarea?.setAttribute("aria-description", LEAVE_HINT);
      session.terminal.focus();
      onSession?.(session);
    };
    const endSession = (): void => {
      if (hasEnded) return;
      state.value = "gone";
      reason.value = "";
      hasEnded = true;
      onSession?.(undefined);
      session?.end();
    };
    openSession().catch(showError);
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      if (session) onSession?.(undefined);
      session?.end();
    };
  }, [agent_id, terminalId, command]);
  const text = STATE_TEXTS[state.value];
  return (
    <div class="terminal" role="region" aria-label={label}>
      {!hasLeaveHint && <p class="leaving desk">{LEAVE_HINT}</p>}
      <div ref={box} class="screen" />
      {text && (
        <p class={state.value === "cut" ? "notice t-attn" : "notice"} role="status">
          {state.value === "cut" && <Icon name="warn" />}
          {text} {reason.value}
          {state.value === "ended" && endedActions}
          {state.value === "gone" && <a href="/terminals">All terminals</a>}
        </p>
      )}
    </div>
  );
};
