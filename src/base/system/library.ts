// Functions of the system's C library that the runtime does not have.
import { dlopen, type FFIFunction } from "bun:ffi";

const NAMES = ["libc.so.6", `libc.musl-${process.arch === "x64" ? "x86_64" : "aarch64"}.so.1`];

/** Undefined where the system has another library. */
export const systemLibrary = <Symbols extends Record<string, FFIFunction>>(symbols: Symbols) => {
  for (const name of process.platform === "linux" ? NAMES : []) {
    try {
      return dlopen(name, symbols).symbols;
    } catch {
      // Another one.
    }
  }
  return undefined;
};
