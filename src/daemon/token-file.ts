// Provides the agent's token to programs of the workspace in a file that only this user can read. The token is not in their environment,
// because `env` would print it into logs and chats (rule DM-20).
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { log } from "#base/log.ts";

/** `env`: the variable that names the file; empty if the file could not be written. Disposing removes the file. */
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
    const writeToken = (newToken: string): void => {
      if (newToken === written) return;
      // Replaces the file atomically, because programs may read it at any time.
      writeFileSync(`${file}.new`, `${newToken}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
      written = newToken;
    };
    writeToken(token);
    return {
      env: { SLIPWAY_AGENT_TOKEN_FILE: file },
      update: (newToken) => {
        try {
          writeToken(newToken);
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
