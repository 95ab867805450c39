// The session that `login` stores for other commands: one file in the user's configuration folder, or the files `url` and `session` of a
// folder that the caller names, readable only by the user (rule CV-1). Its token is sent only to the server that issued it.
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { VerbFailure } from "../failure.ts";
import type { VerbInput } from "../verb.ts";

export type Session = { url: string; token: string; username: string };

type SessionLocation = Pick<VerbInput, "env" | "configFolder">;
type SessionReader = SessionLocation & Pick<VerbInput, "readFile">;

/**
 * Returns `$XDG_CONFIG_HOME/slipway/session.json` if that is an absolute path, otherwise the path below `~/.config`. Throws VerbFailure if
 * there is no home folder.
 */
const getSessionPath = ({ XDG_CONFIG_HOME, HOME }: VerbInput["env"]): string => {
  if (XDG_CONFIG_HOME && isAbsolute(XDG_CONFIG_HOME)) return join(XDG_CONFIG_HOME, "slipway", "session.json");
  if (HOME) return join(HOME, ".config", "slipway", "session.json");
  throw new VerbFailure("no home directory to store the session in: set HOME or XDG_CONFIG_HOME");
};

/** Returns the stored session, or undefined. Throws VerbFailure if the file cannot be read. */
export const readSession = (input: SessionReader): Session | undefined => {
  const { env, configFolder } = input;
  if (configFolder !== undefined) return readFolder(input, configFolder);
  if (!env.HOME && !env.XDG_CONFIG_HOME) return undefined;
  const file = getSessionPath(env);
  const text = readIfExists(input, file);
  if (text === undefined) return undefined;
  const found = parseSession(text);
  if (!found) throw new VerbFailure(`${file} is damaged. Sign in again with \`slipway login\`.`);
  return found;
};

/** Writes the session atomically; other users can never read it, not even briefly. Returns its path. */
export const writeSession = ({ env, configFolder }: SessionLocation, session: Session): string => {
  if (configFolder === undefined) {
    const file = getSessionPath(env);
    writePrivate(file, `${JSON.stringify(session, null, 2)}\n`);
    return file;
  }
  // The old token is removed first: a token must never be next to another server's address.
  rmSync(join(configFolder, "session"), { force: true });
  writePrivate(join(configFolder, "url"), session.url.replace(/\/$/, ""));
  writePrivate(join(configFolder, "session"), session.token);
  return configFolder;
};

export const deleteSession = ({ env, configFolder }: SessionLocation): void => {
  const files =
    configFolder === undefined ? [getSessionPath(env)] : ["session", "url"].map((one) => join(configFolder, one));
  for (const file of files) rmSync(file, { force: true });
};

const readFolder = (input: SessionReader, folder: string): Session | undefined => {
  const [url, token] = ["url", "session"].map((name) => readIfExists(input, join(folder, name))?.trim());
  if (!url || !token) return undefined;
  if (!URL.canParse(url))
    throw new VerbFailure(`${join(folder, "url")} contains no server URL. Sign in again with \`slipway login\`.`);
  return { url, token, username: "" };
};

const readIfExists = ({ readFile }: SessionReader, file: string): string | undefined => {
  try {
    return readFile(file);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw new VerbFailure(`${file} cannot be read: ${(error as Error).message}`);
  }
};

const writePrivate = (file: string, text: string): void => {
  const partFile = `${file}.part`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    rmSync(partFile, { force: true });
    const fd = openSync(partFile, "wx", 0o600);
    try {
      writeSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    // Regardless of the umask.
    chmodSync(partFile, 0o600);
    renameSync(partFile, file);
  } catch (error) {
    throw new VerbFailure(`cannot store the session: ${(error as Error).message}`);
  }
};

const parseSession = (text: string): Session | undefined => {
  try {
    const { url, token, username } = JSON.parse(text) as Partial<Record<keyof Session, unknown>>;
    if (typeof url !== "string" || !URL.canParse(url) || typeof token !== "string") return undefined;
    return { url, token, username: typeof username === "string" ? username : "" };
  } catch {
    return undefined;
  }
};
