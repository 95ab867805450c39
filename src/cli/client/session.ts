// The session that `login` keeps for the other verbs: one file in the user's own configuration folder, which nobody else can read
// (rule CV-1). Its token is for the server it came from and is sent to no other.
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { VerbFailure } from "../failure.ts";
import type { VerbInput } from "../verb.ts";

export type Session = { url: string; token: string; username: string };

type Env = VerbInput["env"];

/** `$XDG_CONFIG_HOME/slipway/session.json`, where that is an absolute path, else below `~/.config`. Throws VerbFailure without a home. */
export const sessionFile = ({ XDG_CONFIG_HOME, HOME }: Env): string => {
  if (XDG_CONFIG_HOME && isAbsolute(XDG_CONFIG_HOME)) return join(XDG_CONFIG_HOME, "slipway", "session.json");
  if (HOME) return join(HOME, ".config", "slipway", "session.json");
  throw new VerbFailure("there is no home folder to keep a session in: set HOME or XDG_CONFIG_HOME");
};

/** The session that is kept, or undefined. Throws VerbFailure when there is a file that cannot be read. */
export const readSession = ({ env, readFile }: Pick<VerbInput, "env" | "readFile">): Session | undefined => {
  if (!env.HOME && !env.XDG_CONFIG_HOME) return undefined;
  const file = sessionFile(env);
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw new VerbFailure(`${file} cannot be read: ${(error as Error).message}`);
  }
  const found = parsed(text);
  if (!found) throw new VerbFailure(`${file} is damaged; \`slipway login\` makes it anew`);
  return found;
};

/** Whole or not at all, and never readable for others, not even for a moment. */
export const writeSession = (env: Env, session: Session): string => {
  const file = sessionFile(env);
  const part = `${file}.part`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    rmSync(part, { force: true });
    const fd = openSync(part, "wx", 0o600);
    try {
      writeSync(fd, `${JSON.stringify(session, null, 2)}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    // Whatever the umask says.
    chmodSync(part, 0o600);
    renameSync(part, file);
  } catch (error) {
    throw new VerbFailure(`the session cannot be kept: ${(error as Error).message}`);
  }
  return file;
};

export const forgetSession = (env: Env): void => rmSync(sessionFile(env), { force: true });

const parsed = (text: string): Session | undefined => {
  try {
    const { url, token, username } = JSON.parse(text) as Partial<Record<keyof Session, unknown>>;
    if (typeof url !== "string" || !URL.canParse(url) || typeof token !== "string") return undefined;
    return { url, token, username: typeof username === "string" ? username : "" };
  } catch {
    return undefined;
  }
};
