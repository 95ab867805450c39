// A terminal emulator that keeps a terminal's screen as a client shows it; the web pages use the same emulator. Loaded with the first
// terminal that needs it. Does not answer queries of programs, because the clients answer them.
import { SerializeAddon } from "@xterm/addon-serialize/lib/addon-serialize.js";
import { Terminal } from "@xterm/headless/lib-headless/xterm-headless.js";
import type { TerminalSize } from "./program.ts";
import { MAX_CELLS, MAX_SIZE, SCROLLBACK } from "./screen-limits.ts";

/**
 * Maximum number of characters sent to a client. A longer replay omits the lines above the screen; if the screen alone is longer, nothing
 * is sent.
 */
const MAX_REPLAY_CHARS = 2 * 1024 * 1024;
const MAX_TITLE_CHARS = 256;

/** Resets the client's screen and modes, in case the client has shown other output. */
const CLEAR_SCREEN = "\x1b[!p\x1b[?1049l\x1b[?1000l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[H\x1b[2J";
/** The sequence with which the package switches to the alternate screen. */
const ENTER_ALTERNATE_SCREEN = "\x1b[?1049h\x1b[H";
/** Modes for the encoding of mouse positions. */
const MOUSE_ENCODINGS: ReadonlySet<number> = new Set([1005, 1006, 1015, 1016]);
const SHOW_CURSOR_MODE = 25;
/** Modes that switch to the alternate screen. */
const ALTERNATE_SCREEN_MODES: ReadonlySet<number> = new Set([47, 1047, 1049]);

/** State that the serializer package omits. */
type TerminalModes = {
  mouse: number | undefined;
  isCursorShown: boolean;
  cursorStyle: number;
  /** The scroll region of each screen. */
  regions: { normal?: Region | undefined; alternate?: Region | undefined };
};
type Region = readonly [top: number, bottom: number];
const createInitialModes = (): TerminalModes => ({
  mouse: undefined,
  isCursorShown: true,
  cursorStyle: 0,
  regions: {},
});

export class Emulator {
  readonly #terminal: Terminal;
  readonly #serializer = new SerializeAddon();
  #modes = createInitialModes();
  #title = "";

  constructor(size: TerminalSize) {
    this.#terminal = new Terminal({ ...toOptions(size), allowProposedApi: true, logLevel: "off" });
    this.#terminal.loadAddon(this.#serializer);
    this.#terminal.onTitleChange((title) => {
      this.#title = title.slice(0, MAX_TITLE_CHARS).replace(/\p{Cc}/gu, "");
    });
    this.#watch();
  }

  /** Resolves when the output is shown. */
  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => this.#terminal.write(bytes, resolve));
  }

  resize(size: TerminalSize): void {
    const { cols, rows, scrollback } = toOptions(size);
    this.#terminal.options.scrollback = scrollback;
    this.#terminal.resize(cols, rows);
    this.#modes.regions = {};
  }

  /** Returns the sequences that give another terminal the same content and state. */
  serialize(): string {
    // Reset colors before the switch, which would otherwise fill the alternate screen with the current color. Drop cursor movements by 0,
    // which terminals treat as 1.
    const screen = this.#serializeScreen()
      .replace(ENTER_ALTERNATE_SCREEN, `\x1b[0m${ENTER_ALTERNATE_SCREEN}`)
      .replaceAll("\x1b[0C", "")
      .replaceAll("\x1b[0D", "");
    return screen === "" ? "" : CLEAR_SCREEN + screen + this.#serializeModes();
  }

  /** Resets to the initial state. */
  reset(): void {
    this.#terminal.reset();
    this.#modes = createInitialModes();
    this.#title = "";
  }

  dispose(): void {
    this.#terminal.dispose();
  }

  #serializeScreen(): string {
    const fullScreen = this.#serializer.serialize();
    if (fullScreen.length <= MAX_REPLAY_CHARS) return fullScreen;
    const visibleScreen = this.#serializer.serialize({ scrollback: 0 });
    return visibleScreen.length <= MAX_REPLAY_CHARS ? visibleScreen : "";
  }

  #serializeModes(): string {
    const { mouse, isCursorShown, cursorStyle, regions } = this.#modes;
    const { cursorX, cursorY, type } = this.#terminal.buffer.active;
    const region = regions[type];
    const { originMode } = this.#terminal.modes;
    const pieces: string[] = [];
    if (region) {
      // Setting the region moves the cursor.
      const row = originMode ? cursorY - region[0] + 1 : cursorY;
      pieces.push(`\x1b[${region[0]};${region[1]}r`, `\x1b[${row + 1};${cursorX + 1}H`);
    }
    if (mouse !== undefined) pieces.push(`\x1b[?${mouse}h`);
    if (cursorStyle !== 0) pieces.push(`\x1b[${cursorStyle} q`);
    if (!isCursorShown) pieces.push(`\x1b[?${SHOW_CURSOR_MODE}l`);
    if (this.#title !== "") pieces.push(`\x1b]2;${this.#title}\x07`);
    return pieces.join("");
  }

  /** Records settings and lets the emulator process them as usual. */
  #watch(): void {
    const { parser } = this.#terminal;
    const resetModes = (): boolean => {
      this.#modes = createInitialModes();
      return false;
    };
    for (const [final, isOn] of [["h", true] as const, ["l", false] as const]) {
      parser.registerCsiHandler({ prefix: "?", final }, (params) => {
        for (const mode of params) {
          if (mode === SHOW_CURSOR_MODE) this.#modes.isCursorShown = isOn;
          else if (ALTERNATE_SCREEN_MODES.has(mode as number) && !isOn) this.#modes.regions.alternate = undefined;
          else if (MOUSE_ENCODINGS.has(mode as number)) this.#modes.mouse = isOn ? (mode as number) : undefined;
        }
        return false;
      });
    }
    parser.registerCsiHandler({ intermediates: " ", final: "q" }, ([style]) => {
      this.#modes.cursorStyle = typeof style === "number" && style <= 6 ? style : 0;
      return false;
    });
    parser.registerCsiHandler({ final: "r" }, ([top, bottom]) => {
      const { rows } = this.#terminal;
      const first = Number(top) || 1;
      const last = Math.min(Number(bottom) || rows, rows);
      const isPartOfScreen = last > first && (first > 1 || last < rows);
      this.#modes.regions[this.#terminal.buffer.active.type] = isPartOfScreen ? [first, last] : undefined;
      return false;
    });
    parser.registerCsiHandler({ intermediates: "!", final: "p" }, resetModes);
    parser.registerEscHandler({ final: "c" }, resetModes);
  }
}

const toOptions = (size: TerminalSize): { cols: number; rows: number; scrollback: number } => {
  const cols = Math.max(2, Math.min(size.width, MAX_SIZE.width));
  const rows = Math.max(1, Math.min(size.height, MAX_SIZE.height));
  return { cols, rows, scrollback: Math.max(0, Math.min(SCROLLBACK, Math.floor(MAX_CELLS / cols) - rows)) };
};
