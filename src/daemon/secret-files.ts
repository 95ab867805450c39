// Secrets of the workspace's owner: as variables of its programs, and as files that only this user can read (rules DM-21 and DM-23).
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { log } from "#base/log.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { type Environment, resolvePlace, stateFolder, toId } from "./environment.ts";
import { SecretRecord } from "./secret-record.ts";

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

type Given = Readonly<Record<string, string | undefined>>;

/**
 * Makes the workspace's files those of the manifest: writes each whole or not at all, and takes back what a daemon of this workspace has
 * written and nobody wants or has changed since. `isStart`: files stand there as they are kept; later only what was changed at the server
 * is written. Never throws: a workspace starts without a file that cannot be written, and its log says which.
 */
export const writeSecretFiles = (
  { secrets, workspaceId }: Secrets & Pick<Manifest, "workspaceId">,
  env: Given,
  { isStart = true }: { isStart?: boolean } = {},
): void => {
  const record = new SecretRecord(stateFolder(env), toId(workspaceId));
  const wanted = new Map(
    secrets
      .filter(({ filePath }) => filePath !== "")
      .map(({ filePath, value }) => [resolvePlace(filePath, env, "/"), value]),
  );
  for (const path of record.paths) if (!wanted.has(path)) takeBack(record, path);
  const due = [...wanted].filter(([path, value]) => isStart || !record.isWritten(path, value));
  for (const [path, value] of due) record.begin(path, value);
  record.save();
  for (const [path, value] of due) {
    try {
      writeWhole(path, value);
      record.end(path, value);
    } catch (error) {
      log("daemon").error("the secret for the file {path} cannot be written: {error}", { path, error });
    }
  }
  if (due.length > 0) record.save();
};

/** Removes a file that is still as it was written; one that someone has changed is theirs. */
const takeBack = (record: SecretRecord, path: string): void => {
  try {
    if (lstatSync(path).isFile() && record.isWritten(path, readFileSync(path))) {
      unlinkSync(path);
      log("daemon").info("the file {path} held a secret that is no longer kept, and is removed", { path });
    } else log("daemon").info("the file {path} was changed since a secret was written into it, and stays", { path });
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ENOENT" && code !== "ENOTDIR") {
      // The next start tries again.
      log("daemon").error("the file {path} of a secret that is no longer kept cannot be removed: {error}", {
        path,
        error,
      });
      return;
    }
  }
  record.forget(path);
};

/** In place of what stands there, also of a link: alongside it first, in a folder of its own that nobody else can look into. */
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
