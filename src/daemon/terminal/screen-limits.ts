// How much of a terminal's screen is kept, known without loading the emulator.
import type { TerminalSize } from "./program.ts";

/** Lines above the screen. */
export const SCROLLBACK = 1_000;
/** Of screen and lines above it, each of 12 bytes and more; wide terminals have fewer lines. */
export const MAX_CELLS = 200_000;
/** A larger terminal is kept cut to this. */
export const MAX_SIZE: TerminalSize = { height: 250, width: 800 };
/** So many lines further up nothing is kept, whatever the size. */
export const KEPT_LINES = SCROLLBACK + MAX_SIZE.height;
