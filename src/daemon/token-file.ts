// Provides the agent's token to programs of the workspace in a file that only this user can read. It is not in their environment, because a
// mere `env` would print it into logs and chats (rule DM-20).
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { log } from "#base/log.ts";

/** `env` names the file; it is empty if the file could not be written. Disposing removes the file. */
export type TokenFile = Disposable & {
  readonly env: Readonly<Record<string, string>>;
  /** Replaces the token in the file. */
  update(token: string): void;
};

/** Never throws: a workspace with a full temp folder works without the file, but git has no linked accounts there. */
export const createTokenFile = (token: string): TokenFile => {
  try {
    const folder = mkdtempSync(join(tmpdir(), "slipway-token-"));
    const file = join(folder, "token");
    let written = "";
    const update = (next: string): void => {
      if (next === written) return;
      // Replaced as a whole, because programs read it at any time.
      writeFileSync(`${file}.new`, `${next}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
      written = next;
    };
    update(token);
    return {
      env: { SLIPWAY_AGENT_TOKEN_FILE: file },
      update: (next) => {
        try {
          update(next);
        } catch (error) {
          log("daemon").error("programs of the workspace keep the agent's previous token: {error}", { error });
        }
      },
      [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
    };
  } catch (error) {
    log("daemon").error("programs of the workspace will not find the agent's token: {error}", { error });
    return { env: {}, update: () => {}, [Symbol.dispose]: () => {} };
  }
};

const TOKEN_VARIABLES = new Set(
  ["SLIPWAY_AGENT", "CODER_AGENT"].flatMap((one) => [`${one}_TOKEN`, `${one}_TOKEN_FILE`]),
);

/** Returns the environment without the token, and without the token file that is for the daemon only. */
export const omitToken = <E extends Readonly<Record<string, string | undefined>>>(env: E): E => {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !TOKEN_VARIABLES.has(name))) as unknown as E;
};
