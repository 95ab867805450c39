// A terminal component. The same `reconnect` ID attaches to the same terminal, even after the page was closed.
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
  readonly reconnect: string;
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
  readonly isToldToLeave?: boolean;
  /** Actions shown when the terminal has ended. */
  readonly ended?: ComponentChildren;
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
  const known = sessionStorage.getItem(key) ?? generateId();
  sessionStorage.setItem(key, known);
  return known;
};

/** `gone`: there is nothing to connect to. */
type ShownState = TerminalState | "gone";

/** A separate request, because a refused WebSocket does not report why. */
const isAgentGone = async (agent_id: string): Promise<boolean> => {
  const path = { workspaceagent: agent_id };
  const error: unknown = await call("GET /workspaceagents/:workspaceagent", { path }).catch((error) => error);
  return error instanceof Problem && [400, 403, 404, 410].includes(error.status);
};

/** Tab and Escape go to the program. Alt-Shift-Up and Alt-Shift-Down move the focus to the elements before and after the terminal. */
const moveFocus = ({ type, altKey, shiftKey, ctrlKey, key }: KeyboardEvent, box: HTMLElement): boolean => {
  const isUp = key === "ArrowUp";
  if (type !== "keydown" || !altKey || !shiftKey || ctrlKey || !(isUp || key === "ArrowDown")) return false;
  const side = isUp ? Node.DOCUMENT_POSITION_PRECEDING : Node.DOCUMENT_POSITION_FOLLOWING;
  const stops = [...document.querySelectorAll<HTMLElement>("a[href], button:enabled, input:enabled, select, textarea")];
  const candidates = stops.filter((one) => box.compareDocumentPosition(one) === side && one.checkVisibility());
  (isUp ? candidates.at(-1) : (candidates[0] ?? document.getElementById("main")))?.focus();
  return true;
};

/** Shown because Tab does not move the focus out of the terminal. */
const LEAVE_HINT = "Press Alt+Shift+Up or Down to leave the terminal.";

const WORDS: Partial<Record<ShownState, string>> = {
  connecting: "Connecting",
  cut: "Connection lost. Reconnecting… Your programs keep running.",
  ended: "The terminal has closed.",
  gone: "Can't connect: the workspace was deleted or rebuilt, or is no longer shared with you.",
};

export const TerminalBox = (props: TerminalProps) => {
  const { agent_id, reconnect, command, label, onSession, onState, fontSize, ended } = props;
  const { isToldToLeave, onTitle, onSize, onFocus, onKey, onModifier } = props;
  const box = useRef<HTMLDivElement>(null);
  const state = useSignal<ShownState>("connecting");
  const why = useSignal("");
  useEffect(() => {
    let session: TerminalSession | undefined;
    let isOver = false;
    const open = async (): Promise<void> => {
      const { TerminalSession } = await loadCode(() => import("./terminal-session.ts"));
      const element = box.current;
      if (isOver || !element) return;
      session = new TerminalSession({
        box: element,
        agent_id,
        reconnect,
        command,
        fontSize,
        onTitle,
        onSize,
        onFocus,
        onKey: (event) => !moveFocus(event, element) && (onKey?.(event) ?? true),
        onModifier,
        onState: (next, reason) => {
          // The latest attempt has failed as well.
          if (next === "cut" && state.value !== "open") void isAgentGone(agent_id).then((is) => is && end());
          state.value = next;
          why.value = reason;
          onState?.(next);
        },
      });
      session.terminal.textarea?.setAttribute("aria-description", LEAVE_HINT);
      session.terminal.focus();
      onSession?.(session);
    };
    const end = (): void => {
      if (isOver) return;
      state.value = "gone";
      why.value = "";
      isOver = true;
      onSession?.(undefined);
      session?.end();
    };
    open().catch(showError);
    return () => {
      if (isOver) return;
      isOver = true;
      if (session) onSession?.(undefined);
      session?.end();
    };
  }, [agent_id, reconnect, command]);
  const words = WORDS[state.value];
  return (
    <div class="terminal" role="region" aria-label={label}>
      {!isToldToLeave && <p class="leaving desk">{LEAVE_HINT}</p>}
      <div ref={box} class="screen" />
      {words && (
        <p class={state.value === "cut" ? "notice t-attn" : "notice"} role="status">
          {state.value === "cut" && <Icon name="warn" />}
          {words} {why.value}
          {state.value === "ended" && ended}
          {state.value === "gone" && <a href="/terminals">All terminals</a>}
        </p>
      )}
    </div>
  );
};
