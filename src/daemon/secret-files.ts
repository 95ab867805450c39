// Provides the owner's secrets as variables of programs and as files that only this user can read (rules DM-21 and DM-23). A file is a link
// to content in memory if the system has a memory-backed folder.
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { getMemoryFolder, isOwnFolder, makeMemoryFolder } from "#base/secrets/memory-folder.ts";
import { readRegularFile } from "#base/system/regular-file.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { type Environment, expandPath, resolveStateFolder, toId } from "./environment.ts";
import { SecretRecord } from "./secret-record.ts";

type Secrets = Pick<Manifest, "secrets">;

/** A larger file is not a secret that the daemon has written. */
const MAX_SECRET_BYTES = 1024 * 1024;

/** Returns the secrets for variables. A secret that is not valid text can only be a file. */
export const listSecretVariables = ({ secrets }: Secrets): Environment => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const variables: Record<string, string> = {};
  for (const { envName, value } of secrets) {
    if (envName === "") continue;
    try {
      variables[envName] = decoder.decode(value);
    } catch {
      log("daemon").error("the secret for the variable {name} is not valid text and is left out", { name: envName });
    }
  }
  return variables;
};

type ProcessEnv = Readonly<Record<string, string | undefined>>;

/**
 * Updates the secret files to match the manifest. Writes each file atomically, and removes files that a daemon of this workspace has
 * written, if their secret was deleted and they have not been changed since. `isStart`: writes all files; later calls write only files that
 * changed on the server. Never throws: if a file cannot be written, the workspace starts without it and the log names it.
 */
export const writeSecretFiles = (
  { secrets, workspaceId }: Secrets & Pick<Manifest, "workspaceId">,
  env: ProcessEnv,
  { isStart = true }: { isStart?: boolean } = {},
): void => {
  const id = toId(workspaceId);
  const memory = getMemoryFolder(id);
  const record = new SecretRecord(resolveStateFolder(env), id, memory);
  const wantedFiles = new Map(
    secrets
      .filter(({ filePath }) => filePath !== "")
      .map(({ filePath, value }) => [expandPath(filePath, env, "/"), value]),
  );
  for (const path of record.paths)
    if (!wantedFiles.has(path)) removeSecretFile(record, path, toMemoryPath(memory, path));
  const hasMemory = id !== "" && (wantedFiles.size > 0 ? makeMemoryFolder(memory) : isOwnFolder(memory));
  const changedFiles = [...wantedFiles].filter(([path, value]) => isStart || !record.isWritten(path, value));
  for (const [path, value] of changedFiles) record.begin(path, value);
  record.save(hasMemory);
  if (wantedFiles.size === 0) removeIfEmpty(memory);
  for (const [path, value] of changedFiles) {
    try {
      if (hasMemory) writeLinked(path, toMemoryPath(memory, path), value);
      else writeSecretFile(path, value);
      record.end(path, value);
    } catch (error) {
      log("daemon").error("cannot write the secret to the file {path}: {error}", { path, error });
    }
  }
  if (changedFiles.length > 0) record.save(hasMemory);
};

/** Removes the folder if it is empty: another daemon of the same workspace may have content in it. */
const removeIfEmpty = (folder: string): void => {
  try {
    rmdirSync(folder);
  } catch {}
};

const toMemoryPath = (memory: string, path: string): string => join(memory, sha256(path).slice(0, 32));

/** Removes a file that is unchanged since it was written. A file that a person has changed is kept as an ordinary file of the workspace. */
const removeSecretFile = (record: SecretRecord, path: string, file: string): void => {
  try {
    const stats = lstatSync(path);
    const isLinked = stats.isSymbolicLink() && readlinkSync(path) === file;
    const isReadable = isLinked || (stats.isFile() && stats.size <= MAX_SECRET_BYTES);
    const text = isReadable ? readBytes(isLinked ? file : path) : undefined;
    const isOurs = text === undefined ? isLinked : record.isWritten(path, text);
    if (isOurs) unlinkSync(path);
    else if (isLinked && text) writeSecretFile(path, text);
    if (isOurs) log("daemon").info("removed the file {path}, because its secret was deleted", { path });
    else log("daemon").info("kept the file {path} of a deleted secret, because it was changed", { path });
    rmSync(file, { force: true });
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ENOENT" && code !== "ENOTDIR") {
      // The next start retries.
      log("daemon").error("cannot remove the file {path} of a deleted secret: {error}", {
        path,
        error,
      });
      return;
    }
  }
  record.remove(path);
};

/** Returns undefined if the file is missing: content in memory disappears when a daemon is killed. */
const readBytes = (path: string): Uint8Array | undefined => {
  try {
    return readRegularFile(path, MAX_SECRET_BYTES);
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return undefined;
    throw error;
  }
};

/** Writes the content to `target` and then replaces `path`, even if it is a link, with a link to it. */
const writeLinked = (path: string, target: string, bytes: Uint8Array): void => {
  writeSecretFile(target, bytes);
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(path) === target) return;
  try {
    replaceAtomically(path, (file) => symlinkSync(target, file));
  } catch (error) {
    rmSync(target, { force: true });
    throw error;
  }
};

/** Replaces the file, even if it is a link. */
const writeSecretFile = (path: string, bytes: Uint8Array): void =>
  replaceAtomically(path, (file) => writeFileSync(file, bytes, { mode: 0o600 }));

/** Creates the file in a folder that no other user can open, and then moves it to its destination. */
const replaceAtomically = (path: string, write: (file: string) => void): void => {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stagingFolder = mkdtempSync(join(folder, ".slipway-secret-"));
  try {
    const file = join(stagingFolder, basename(path));
    write(file);
    renameSync(file, path);
  } finally {
    rmSync(stagingFolder, { recursive: true, force: true });
  }
};
