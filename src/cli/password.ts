// The password for a command: read from a file (`--password-file /dev/stdin` for a pipe), or generated and shown once. Never from an
// argument, which other users of the machine can read.
import { keySecret } from "#base/ids.ts";
import { usageError } from "#base/usage-error.ts";
import { readOptionFile } from "./options.ts";
import type { VerbInput } from "./verb.ts";

export type Password = { password: string; isGenerated: boolean };

/** Throws UsageError if the file cannot be read. */
export const readPassword = (file: string | undefined, input: VerbInput): Password => {
  if (file === undefined) return { password: keySecret(), isGenerated: true };
  const password = readOptionFile("--password-file", file, input).replace(/\r?\n$/, "");
  // Such a password could not be typed into the sign-in page.
  if (/[\r\n]/.test(password)) throw usageError("--password-file", `${file} holds more than one line`);
  return { password, isGenerated: false };
};
