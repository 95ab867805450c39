// Slipway's section in OpenSSH's configuration: between two comment lines at the top of the file, since OpenSSH uses the first value of an
// option. Everything outside is preserved byte for byte (rule CN-4).
import { chmodSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { VerbFailure } from "../../failure.ts";
import type { VerbInput } from "../../verb.ts";

const BEGIN = "# --- begin of the section written by `slipway config-ssh`; it is overwritten each time ---";
const END = "# --- end of the section written by `slipway config-ssh` ---";

/** Returns the given file, or `~/.ssh/config`. Throws VerbFailure if there is no home folder. */
export const getConfigPath = ({ HOME }: VerbInput["env"], given: string | undefined): string => {
  if (given !== undefined) return given;
  if (!HOME) throw new VerbFailure("no home directory: set HOME, or pass --file");
  return join(HOME, ".ssh", "config");
};

/** Removes the section from the text. Throws VerbFailure if one of its markers is missing, because its extent is unknown then. */
export const removeSection = (text: string): string => {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 && end < 0) return text;
  if (begin < 0 || end < begin)
    throw new VerbFailure(
      "the start or end marker of the Slipway section is missing; remove the rest of the section by hand",
    );
  return text.slice(0, begin) + text.slice(end + END.length).replace(/^\n{1,2}/, "");
};

export type Section = { prefix: string; command: string; options: readonly string[] };

/** Returns the text with the section before it. */
export const addSection = (text: string, { prefix, command, options }: Section): string => {
  const lines = [
    ...options,
    "ConnectTimeout 0",
    // The tunnel has authenticated the workspace; its host key changes at every start.
    "StrictHostKeyChecking no",
    "UserKnownHostsFile /dev/null",
    // OpenSSH prefers CTR with an HMAC, which takes six times the processor time of GCM.
    "Ciphers aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr",
    "LogLevel ERROR",
    `ProxyCommand ${command}`,
  ];
  const section = [BEGIN, `Host ${prefix}*`, ...lines.map((line) => `    ${line}`), END];
  return `${section.join("\n")}\n${text === "" ? "" : `\n${text}`}`;
};

/** Replaces the file atomically; a symbolic link is kept. Throws VerbFailure. */
export const writeConfig = (file: string, text: string): void => {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const target = findRealPath(file) ?? file;
    const partFile = `${target}.slipway-part`;
    rmSync(partFile, { force: true });
    writeFileSync(partFile, text, { mode: 0o600, flush: true });
    const mode = findRealPath(file) ? statSync(target).mode & 0o777 : 0o600;
    chmodSync(partFile, mode);
    renameSync(partFile, target);
  } catch (error) {
    throw new VerbFailure(`${file} cannot be written: ${(error as Error).message}`);
  }
};

const findRealPath = (file: string): string | undefined => {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
};
