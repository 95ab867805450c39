// A terminal as a part of a page. The same `reconnect` comes back to the same terminal, also after the page was closed.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { failed } from "../../shell/toasts.tsx";
import { Icon } from "../icon.tsx";
import type { Modifier } from "./terminal-keys.ts";
import type { TerminalSession, TerminalState } from "./terminal-session.ts";

type TerminalProps = {
  readonly agent_id: string;
  readonly reconnect: string;
  readonly command?: string;
  readonly label: string;
  readonly onTitle?: (title: string) => void;
  /** The session, for those who search in it or type into it. */
  readonly onSession?: (session: TerminalSession | undefined) => void;
  readonly onState?: (state: TerminalState) => void;
  readonly onSize?: (columns: number, rows: number) => void;
  readonly onFocus?: () => void;
  readonly onKey?: (event: KeyboardEvent) => boolean;
  readonly onModifier?: (modifier: Modifier | undefined) => void;
  readonly fontSize?: number;
  /** What can be done when it has ended. */
  readonly ended?: ComponentChildren;
};

/** Also where a page came without https from another machine, and the browser keeps its own function back. */
export const newId = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 15) | 64;
  bytes[8] = ((bytes[8] ?? 0) & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
};

/** The id of the terminal this browser has last opened in the agent, or a new one. */
export const lastTerminal = (agent_id: string): string => {
  const key = `terminal ${agent_id}`;
  const known = sessionStorage.getItem(key) ?? newId();
  sessionStorage.setItem(key, known);
  return known;
};

const WORDS: Partial<Record<TerminalState, string>> = {
  connecting: "Connecting",
  cut: "The line is cut; trying again. What runs, runs on.",
  ended: "The terminal has ended.",
};

export const TerminalBox = (props: TerminalProps) => {
  const { agent_id, reconnect, command, label, onSession, onState, fontSize, ended } = props;
  const { onTitle, onSize, onFocus, onKey, onModifier } = props;
  const box = useRef<HTMLDivElement>(null);
  const state = useSignal<TerminalState>("connecting");
  const why = useSignal("");
  useEffect(() => {
    let session: TerminalSession | undefined;
    let isOver = false;
    const open = async (): Promise<void> => {
      const { TerminalSession } = await import("./terminal-session.ts");
      if (isOver || !box.current) return;
      session = new TerminalSession({
        box: box.current,
        agent_id,
        reconnect,
        command,
        fontSize,
        onTitle,
        onSize,
        onFocus,
        onKey,
        onModifier,
        onState: (next, reason) => {
          state.value = next;
          why.value = reason;
          onState?.(next);
        },
      });
      session.terminal.focus();
      onSession?.(session);
    };
    open().catch(failed);
    return () => {
      isOver = true;
      if (session) onSession?.(undefined);
      session?.end();
    };
  }, [agent_id, reconnect, command]);
  const words = WORDS[state.value];
  return (
    <div class="terminal" role="region" aria-label={label}>
      <div ref={box} class="screen" />
      {words && (
        <p class={state.value === "cut" ? "notice t-attn" : "notice"} role="status">
          {state.value === "cut" && <Icon name="warn" />}
          {words} {why.value}
          {state.value === "ended" && ended}
        </p>
      )}
    </div>
  );
};
