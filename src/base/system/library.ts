// Functions of the system's C library that the runtime does not expose.
import { dlopen, type FFIFunction } from "bun:ffi";

const NAMES = ["libc.so.6", `libc.musl-${process.arch === "x64" ? "x86_64" : "aarch64"}.so.1`];

/** Returns undefined when the system has a different C library. */
export const loadSystemLibrary = <Symbols extends Record<string, FFIFunction>>(symbols: Symbols) => {
  for (const name of process.platform === "linux" ? NAMES : []) {
    try {
      return dlopen(name, symbols).symbols;
    } catch {
      // Try the next library.
    }
  }
  return undefined;
};
