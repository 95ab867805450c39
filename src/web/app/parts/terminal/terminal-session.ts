// A terminal of a workspace in the page: xterm, and a socket that reconnects to the same terminal after a disconnect. Loaded with the first
// terminal.
import { effect } from "@preact/signals";
import { FitAddon } from "@xterm/addon-fit";
import type { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import rules from "@xterm/xterm/css/xterm.css" with { type: "text" };
import { onDeadConnection } from "../../data/live-socket.ts";
import { loadCode } from "../../data/load-code.ts";
import { type TerminalFont, terminalFont } from "../../data/looks.ts";
import { showError } from "../../shell/toasts.tsx";
import { adoptSheet } from "../adopt-sheet.ts";
import { copyText } from "../as-command.tsx";
import { splitInput } from "./split-input.ts";
import { applyModifier, type Modifier, toCursorKeys } from "./terminal-keys.ts";
import { styleSpansByObject, withAdoptedStyles } from "./terminal-styles.ts";

declare const SLIPWAY_FONTS: Readonly<Record<string, Readonly<Record<string, string>>>>;

const fontLoads = new Map<string, Promise<unknown>>();

const addFontFaces = (font: string): Promise<unknown> =>
  Promise.all(
    Object.entries(SLIPWAY_FONTS[font] ?? {}).map(async ([weight, address]) => {
      document.fonts.add(await new FontFace(font, `url(${address})`, { weight }).load());
    }),
  );

/** Loads the font and returns its family; `defaultFamily` if none was chosen. Throws if it cannot be loaded. */
const loadFont = async (font: TerminalFont, defaultFamily: string): Promise<string> => {
  if (font === "") return defaultFamily;
  let fontLoad = fontLoads.get(font);
  if (!fontLoad) {
    fontLoad = addFontFaces(font).catch((error) => {
      fontLoads.delete(font);
      throw error;
    });
    fontLoads.set(font, fontLoad);
  }
  await fontLoad;
  return `${font}, ${defaultFamily}`;
};

export type TerminalState = "connecting" | "open" | "cut" | "ended";

type SessionOptions = {
  readonly box: HTMLElement;
  readonly agent_id: string;
  /** ID of the terminal (a UUID). The same ID attaches to the running terminal. */
  readonly terminalId: string;
  readonly command?: string;
  readonly onState: (state: TerminalState, reason: string) => void;
  readonly onTitle?: (title: string) => void;
  readonly onModifier?: (modifier: Modifier | undefined) => void;
  readonly onSize?: (columns: number, rows: number) => void;
  readonly onFocus?: () => void;
  /** Handles the page's shortcuts: false keeps a key from the program. */
  readonly onKey?: (event: KeyboardEvent) => boolean;
  /** Font size in pixels. */
  readonly fontSize?: number;
};

const BASE_DELAY_MS = 300;
/** Minimum contrast of text, whatever colors a program uses. */
const MIN_CONTRAST = 4.5;
const MAX_DELAY_MS = 10_000;
/** Backpressure: input waits while the socket has more unsent bytes than this, and is checked again after this delay. */
const MAX_UNSENT_BYTES = 64 * 1024;
const UNSENT_CHECK_MS = 10;
const CONNECT_TIMEOUT_MS = 15_000;
/** Gives the margin around the text the terminal's background; the package would make it black. */
const BACKGROUND_RULE = ".xterm .xterm-viewport { background-color: var(--bg-inset); }";
/** The close codes for a terminal that no longer exists. */
const ENDED_CODES = [1000, 1008];

const readProperty = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Returns a design token's color as the browser computes it now, in light or dark mode. */
const resolveColor = (box: HTMLElement, name: string): string => {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  box.append(probe);
  const computed = getComputedStyle(probe).color;
  probe.remove();
  return computed;
};

const readTheme = (box: HTMLElement) => {
  const readColor = (name: string): string => resolveColor(box, name);
  const colors = {
    red: readColor("--ansi-red"),
    green: readColor("--ansi-green"),
    yellow: readColor("--ansi-yellow"),
    blue: readColor("--ansi-blue"),
    magenta: readColor("--ansi-magenta"),
    cyan: readColor("--ansi-cyan"),
  };
  const bright = Object.fromEntries(
    Object.entries(colors).map(([name, shade]) => [`bright${name.charAt(0).toUpperCase()}${name.slice(1)}`, shade]),
  );
  return {
    background: readColor("--bg-inset"),
    foreground: readColor("--text"),
    cursor: readColor("--accent"),
    cursorAccent: readColor("--bg-inset"),
    selectionBackground: readColor("--accent-line"),
    black: readColor("--text-3"),
    brightBlack: readColor("--text-3"),
    white: readColor("--text-2"),
    brightWhite: readColor("--text"),
    ...colors,
    ...bright,
  };
};

export class TerminalSession {
  readonly terminal: Terminal;
  readonly #options: SessionOptions;
  readonly #fit = new FitAddon();
  readonly #sizeObserver: ResizeObserver;
  readonly #darkMode = matchMedia("(prefers-color-scheme: dark)");
  readonly #themeObserver: MutationObserver;
  readonly #stopFontEffect: () => void;
  readonly #stopDeadListener: () => void;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempts = 0;
  #hasEnded = false;
  #modifier: Modifier | undefined;
  /** Input that waits to be sent. */
  readonly #pendingInput: string[] = [];
  #inputTimer: ReturnType<typeof setTimeout> | undefined;
  #search: Promise<SearchAddon> | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    const { box, onTitle, onFocus, onKey } = options;
    adoptSheet(`${rules as unknown as string} ${BACKGROUND_RULE}`);
    styleSpansByObject();
    this.terminal = withAdoptedStyles(() => {
      const terminal = new Terminal({
        fontFamily: readProperty("--font-mono"),
        fontSize: options.fontSize ?? 13,
        lineHeight: 1.25,
        // A blinking cursor makes the browser render 60 frames a second, and each keystroke waits for the next one.
        cursorBlink: false,
        scrollback: 10_000,
        theme: readTheme(box),
        screenReaderMode: false,
        allowProposedApi: true,
        minimumContrastRatio: MIN_CONTRAST,
      });
      terminal.loadAddon(this.#fit);
      terminal.loadAddon(new WebLinksAddon((_event, url) => void window.open(url, "_blank", "noreferrer")));
      terminal.open(box);
      return terminal;
    });
    void this.#draw();
    this.#stopFontEffect = effect(() => void this.#applyFont(terminalFont.value).catch(showError));
    this.terminal.onData((data) => {
      this.#send({ data: applyModifier(data, this.#modifier) });
      this.modify(undefined);
    });
    this.terminal.onResize(({ cols, rows }) => {
      this.#send({ width: cols, height: rows });
      options.onSize?.(cols, rows);
    });
    if (onTitle) this.terminal.onTitleChange(onTitle);
    if (onFocus) this.terminal.textarea?.addEventListener("focus", onFocus);
    this.terminal.attachCustomKeyEventHandler((event) => this.#handleCopy(event) && (onKey?.(event) ?? true));
    this.#sizeObserver = new ResizeObserver(() => this.#fit.fit());
    this.#sizeObserver.observe(box);
    const applyTheme = (): void => {
      this.terminal.options.theme = readTheme(box);
    };
    this.#darkMode.onchange = applyTheme;
    this.#themeObserver = new MutationObserver(applyTheme);
    this.#themeObserver.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.#fit.fit();
    addEventListener("online", this.#now);
    document.addEventListener("visibilitychange", this.#now);
    this.#stopDeadListener = onDeadConnection(() => this.#reconnect());
    this.#open();
  }

  /** Types text as if from the keyboard; used by the key row on phones. */
  type(data: string): void {
    const input = toCursorKeys(data, this.terminal.modes.applicationCursorKeysMode);
    this.#send({ data: applyModifier(input, this.#modifier) });
    this.modify(undefined);
    this.terminal.focus();
  }

  /** Returns the search addon, loaded on first use. */
  search(): Promise<SearchAddon> {
    this.#search ??= this.#loadSearch().catch((error) => {
      this.#search = undefined;
      throw error;
    });
    return this.#search;
  }

  async #loadSearch(): Promise<SearchAddon> {
    const { SearchAddon } = await loadCode(() => import("@xterm/addon-search"));
    const addon = new SearchAddon();
    withAdoptedStyles(() => this.terminal.loadAddon(addon));
    return addon;
  }

  /** Applies a modifier to the next character, for keyboards without modifiers. */
  modify(modifier: Modifier | undefined): void {
    if (this.#modifier === modifier) return;
    this.#modifier = modifier;
    this.#options.onModifier?.(modifier);
  }

  set fontSize(pixels: number) {
    this.terminal.options.fontSize = pixels;
    this.#fit.fit();
  }

  /** Ctrl-C copies the selection, or interrupts if nothing is selected. Ctrl-Shift-C always copies. */
  #handleCopy(event: KeyboardEvent): boolean {
    if (event.type !== "keydown" || event.key.toLowerCase() !== "c" || !event.ctrlKey || event.altKey) return true;
    const selected = this.terminal.getSelection();
    if (selected === "" && !event.shiftKey) return true;
    event.preventDefault();
    if (selected !== "") void copyText(selected).then(() => this.terminal.clearSelection());
    return false;
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#inputTimer);
    removeEventListener("online", this.#now);
    document.removeEventListener("visibilitychange", this.#now);
    this.#darkMode.onchange = null;
    this.#themeObserver.disconnect();
    this.#stopFontEffect();
    this.#sizeObserver.disconnect();
    this.#stopDeadListener();
    if (this.#socket) this.#socket.onclose = null;
    this.#socket?.close();
    this.terminal.dispose();
  }

  /** Applies the user's font. */
  async #applyFont(font: TerminalFont): Promise<void> {
    const family = await loadFont(font, readProperty("--font-mono"));
    if (this.#hasEnded || font !== terminalFont.value) return;
    this.terminal.options.fontFamily = family;
    this.#fit.fit();
  }

  /** Renders with WebGL if available, otherwise with the DOM, also after the GPU context is lost. */
  async #draw(): Promise<void> {
    if (!document.createElement("canvas").getContext("webgl2")) return;
    try {
      const { WebglAddon } = await loadCode(() => import("@xterm/addon-webgl"));
      if (this.#hasEnded) return;
      const addon = new WebglAddon();
      addon.onContextLoss(() => addon.dispose());
      withAdoptedStyles(() => this.terminal.loadAddon(addon));
    } catch {
      // The DOM renderer continues.
    }
  }

  #send(input: { data?: string; width?: number; height?: number }): void {
    const { data, ...size } = input;
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (data === undefined) this.#socket.send(JSON.stringify(size));
    else this.#queueInput(data);
  }

  /** Sends input in order, and large pastes in pieces: the next piece is sent when the socket has sent the previous ones. */
  #queueInput(data: string): void {
    this.#pendingInput.push(...splitInput(data));
    if (this.#inputTimer === undefined) this.#sendQueued(this.#socket);
  }

  #sendQueued(socket: WebSocket | undefined): void {
    this.#inputTimer = undefined;
    if (socket?.readyState !== WebSocket.OPEN) {
      // Input that waited for the old connection is not sent on the new one.
      this.#pendingInput.length = 0;
      return;
    }
    while (this.#pendingInput.length > 0 && socket.bufferedAmount < MAX_UNSENT_BYTES) {
      socket.send(JSON.stringify({ data: this.#pendingInput.shift() }));
    }
    if (this.#pendingInput.length > 0) this.#inputTimer = setTimeout(() => this.#sendQueued(socket), UNSENT_CHECK_MS);
  }

  #open(): void {
    const { agent_id, terminalId, command, onState } = this.#options;
    const { cols, rows } = this.terminal;
    const query = new URLSearchParams({ reconnect: terminalId, width: String(cols), height: String(rows) });
    if (command) query.set("command", command);
    const url = new URL(`/api/v2/workspaceagents/${agent_id}/pty?${query}`, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    if (this.#attempts === 0) onState("connecting", "");
    this.#timer = setTimeout(() => this.#reconnect(), CONNECT_TIMEOUT_MS);
    socket.onopen = () => {
      clearTimeout(this.#timer);
      // The server replays the end of the terminal's output, which would appear twice.
      if (this.#attempts > 0) this.terminal.reset();
      this.#attempts = 0;
      onState("open", "");
      this.#send({ width: this.terminal.cols, height: this.terminal.rows });
    };
    socket.onmessage = ({ data }) => this.terminal.write(typeof data === "string" ? data : new Uint8Array(data));
    socket.onclose = ({ code, reason }) => {
      this.#socket = undefined;
      if (this.#hasEnded) return;
      if (ENDED_CODES.includes(code)) onState("ended", reason);
      else this.#scheduleReconnect(reason);
    };
  }

  /** Abandons a connection that was not closed. */
  #reconnect(): void {
    const socket = this.#socket;
    if (!socket || this.#hasEnded) return;
    socket.onclose = null;
    socket.onmessage = null;
    socket.onopen = null;
    socket.close();
    this.#socket = undefined;
    this.#scheduleReconnect("");
  }

  #scheduleReconnect(reason: string): void {
    clearTimeout(this.#timer);
    const maxDelayMs = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** this.#attempts);
    this.#attempts += 1;
    this.#options.onState("cut", reason);
    this.#timer = setTimeout(() => this.#open(), maxDelayMs / 2 + (Math.random() * maxDelayMs) / 2);
  }

  readonly #now = (): void => {
    if (this.#socket || this.#hasEnded || document.hidden) return;
    clearTimeout(this.#timer);
    this.#open();
  };
}
