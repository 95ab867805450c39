// Secrets of the workspace's owner: as variables of its programs, and as files that only this user can read (rule DM-21).
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { log } from "#base/log.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { type Environment, placeOf } from "./environment.ts";

type Secrets = Pick<Manifest, "secrets">;

/** Values that are no text are for files only. */
export const secretVariables = ({ secrets }: Secrets): Environment => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const variables: Record<string, string> = {};
  for (const { envName, value } of secrets) {
    if (envName === "") continue;
    try {
      variables[envName] = decoder.decode(value);
    } catch {
      log("daemon").error("the secret for the variable {name} is no text and is left out", { name: envName });
    }
  }
  return variables;
};

/** Writes each file whole or not at all. Never throws: a workspace starts without a file that cannot be written, and its log says which. */
export const writeSecretFiles = ({ secrets }: Secrets, env: Readonly<Record<string, string | undefined>>): void => {
  for (const { filePath, value } of secrets) {
    if (filePath === "") continue;
    try {
      writeWhole(placeOf(filePath, env, "/"), value);
    } catch (error) {
      log("daemon").error("the secret for the file {path} cannot be written: {error}", { path: filePath, error });
    }
  }
};

/** In place of what stands there, also of a link: beside it first, in a folder of its own that nobody else can look into. */
const writeWhole = (path: string, bytes: Uint8Array): void => {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const beside = mkdtempSync(join(folder, ".slipway-secret-"));
  try {
    const file = join(beside, basename(path));
    writeFileSync(file, bytes, { mode: 0o600 });
    renameSync(file, path);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
};
