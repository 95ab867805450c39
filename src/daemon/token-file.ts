// Where programs of the workspace find the agent's token: in a file that only this user can read, never in their environment, which a
// mere `env` prints into logs and chats (rule DM-20).
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { log } from "#base/log.ts";

/** `env` names the file; it is empty where none could be written. Disposing removes the file. */
export type TokenFile = Disposable & { readonly env: Readonly<Record<string, string>> };

/** Never throws: a workspace whose temp folder is full works without, but its git finds no linked accounts. */
export const tokenFile = (token: string): TokenFile => {
  try {
    const folder = mkdtempSync(join(tmpdir(), "slipway-token-"));
    const file = join(folder, "token");
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    return {
      env: { SLIPWAY_AGENT_TOKEN_FILE: file },
      [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
    };
  } catch (error) {
    log("daemon").error("programs of the workspace will not find the agent's token: {error}", { error });
    return { env: {}, [Symbol.dispose]: () => {} };
  }
};

/** The same environment without the token, and without the file that only the daemon was given. */
export const withoutToken = <E extends Readonly<Record<string, string | undefined>>>(env: E): E => {
  const { SLIPWAY_AGENT_TOKEN: _token, SLIPWAY_AGENT_TOKEN_FILE: _file, ...rest } = env;
  return rest as unknown as E;
};
