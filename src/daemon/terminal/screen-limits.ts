// Limits of a terminal's stored screen. They have their own file, so that their users do not load the emulator.
import type { TerminalSize } from "./program.ts";

/** Lines above the screen. */
export const SCROLLBACK = 1_000;
/** Maximum number of cells in screen and scrollback, at 12 bytes or more each; wide terminals have fewer lines. */
export const MAX_CELLS = 200_000;
/** The screen of a larger terminal is stored cropped to this size. */
export const MAX_SIZE: TerminalSize = { height: 250, width: 800 };
/** Lines further up are never stored, regardless of the size. */
export const MAX_STORED_LINES = SCROLLBACK + MAX_SIZE.height;
