// The state and actions of the terminals page: open terminals, the current one, and the font size.
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { generateId } from "../../parts/terminal/terminal.tsx";
import type { Modifier } from "../../parts/terminal/terminal-keys.ts";
import type { TerminalSession } from "../../parts/terminal/terminal-session.ts";
import { showError } from "../../shell/toasts.tsx";
import * as layouts from "./layout.ts";

const FONT_KEY = "slipway.terminal-font";
const FONT_SIZE = 13;
export const FONT_SIZES = [10, 11, 12, 13, 14, 16, 18, 20];

export class Terminals {
  readonly agent: string;
  /** Sessions of the rendered terminals, by terminal ID. */
  readonly sessions = new Map<string, TerminalSession>();
  readonly isSearching = signal(false);
  readonly modifier: Signal<Modifier | undefined> = signal(undefined);
  /** Columns and rows of the most recently resized terminal. */
  readonly size = signal("");
  readonly titles = signal<Readonly<Record<string, string>>>({});
  readonly fontSize = signal(Number(localStorage.getItem(FONT_KEY)) || FONT_SIZE);
  /** The initial command of one terminal. */
  readonly initialCommand: { readonly id: string; readonly command: string } | undefined;
  readonly #layout: Signal<layouts.Layout>;
  readonly #onLastClosed: () => void;

  /** `onLastClosed` is called when the last terminal is closed. */
  constructor(agent: string, command: string | undefined, onLastClosed: () => void) {
    this.agent = agent;
    this.#onLastClosed = onLastClosed;
    const storedLayout = layouts.loadLayout(agent);
    const initialLayout =
      storedLayout && !command
        ? storedLayout
        : storedLayout
          ? layouts.addTab(storedLayout, generateId())
          : layouts.createLayout(generateId());
    this.initialCommand = command ? { id: initialLayout.pane, command } : undefined;
    this.#layout = signal(initialLayout);
    layouts.storeLayout(agent, initialLayout);
  }

  get layout(): ReadonlySignal<layouts.Layout> {
    return this.#layout;
  }

  /** The current terminal, once it is rendered. */
  get current(): TerminalSession | undefined {
    return this.sessions.get(this.#layout.value.pane);
  }

  add(position: "tab" | "right" | "below"): void {
    const layout = this.#layout.value;
    if (layouts.listAllPanes(layout).length >= layouts.MAX_PANES) {
      showError(new Error(`There are ${layouts.MAX_PANES} terminals already. Close one first.`));
    } else
      this.#setLayout(
        position === "tab" ? layouts.addTab(layout, generateId()) : layouts.splitPane(layout, position, generateId()),
      );
  }

  close(id: string): void {
    this.#setLayout(layouts.closePane(this.#layout.value, id));
  }

  /** Replaces a terminal that has ended with a new one. */
  restart(id: string): void {
    this.#setLayout(layouts.replacePane(this.#layout.value, id, generateId()));
  }

  selectTab(index: number): void {
    this.#setLayout(layouts.selectTab(this.#layout.value, index));
  }

  /** Called when `pane` receives the focus. */
  onFocus(pane: string): void {
    if (this.#layout.value.pane !== pane) this.#layout.value = layouts.selectPane(this.#layout.value, pane);
  }

  /** Moves to the next or previous terminal in this tab. */
  moveBy(step: 1 | -1): void {
    const { tabs, tab, pane } = this.#layout.value;
    const panes = layouts.listPanes(tabs[tab] ?? { columns: [] });
    this.#setLayout(
      layouts.selectPane(this.#layout.value, panes.at((panes.indexOf(pane) + step) % panes.length) ?? pane),
    );
  }

  setSearching(isSearching: boolean): void {
    this.isSearching.value = isSearching;
  }

  setFontSize(pixels: number): void {
    this.fontSize.value = pixels;
    localStorage.setItem(FONT_KEY, String(pixels));
    for (const session of this.sessions.values()) session.fontSize = pixels;
  }

  /** Handles the page's shortcuts. Returns false for a key that was handled. Keys that a shell may need are not intercepted. */
  readonly handleKey = (event: KeyboardEvent): boolean => {
    const act = event.type === "keydown" ? this.#findAction(event) : undefined;
    if (!act) return true;
    event.preventDefault();
    act();
    return false;
  };

  #findAction({ altKey, ctrlKey, shiftKey, code }: KeyboardEvent): (() => void) | undefined {
    const number = Number(/^Digit([1-9])$/.exec(code)?.[1] ?? 0);
    if (altKey && !ctrlKey && number > 0)
      return this.#layout.value.tabs[number - 1] ? () => this.selectTab(number - 1) : undefined;
    if (ctrlKey && shiftKey && code === "KeyF") return () => this.setSearching(true);
    if (!altKey || !shiftKey || ctrlKey) return undefined;
    const actions: Record<string, () => void> = {
      KeyT: () => this.add("tab"),
      KeyR: () => this.add("right"),
      KeyB: () => this.add("below"),
      ArrowRight: () => this.moveBy(1),
      ArrowLeft: () => this.moveBy(-1),
    };
    return actions[code];
  }

  #setLayout(next: layouts.Layout | undefined): void {
    layouts.storeLayout(this.agent, next);
    if (!next) {
      this.#onLastClosed();
      return;
    }
    this.#layout.value = next;
    queueMicrotask(() => this.current?.terminal.focus());
  }
}
