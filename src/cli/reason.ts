// Explains errors that are caused by this machine's state and are not bugs. Other errors keep their stack.
import { address } from "#base/config/kinds.ts";
import type { Config } from "#base/config.ts";
import { EncryptionKeyError } from "#base/encryption.ts";
import { LockedError } from "#base/lock-file.ts";
import { BucketError } from "#base/network/bucket-error.ts";
import { TlsError } from "#base/tls.ts";
import { isDamage, NEXT_STEP } from "#db/engine/damage.ts";
import { DatabaseVersionError } from "#db/engine/migration.ts";
import { CommitError } from "#db/engine/store.ts";
import { UnsafeDatabaseError } from "#db/engine/unsafe.ts";
import { MetricsAddressError } from "#src/api/metrics/listen.ts";

/** Returns why `serve` cannot start; undefined for a bug. */
export function explainReason(error: unknown, config: Config): string | undefined {
  const code = getCode(error);
  const listenAddress = address.print(config.address);
  if (code === "EADDRINUSE") return `${listenAddress} is in use by another program; choose another with --address`;
  if (code === "EADDRNOTAVAIL")
    return `${listenAddress} is not an address of this machine; choose another with --address`;
  const reason = explainMachineError(error);
  const concernsFolder = FILE_ERRORS.has(code) || findDatabaseError(error) !== undefined;
  return reason && concernsFolder ? `${reason} (data directory ${config.data_dir})` : reason;
}

/** Explains an error of the disk, a file or the database; undefined for a bug, which keeps its stack. */
export const explainMachineError = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined;
  if (EXPLAINED_ERRORS.some((kind) => error instanceof kind) || FILE_ERRORS.has(getCode(error))) return error.message;
  // An unreachable database has no more specific error.
  if (error instanceof CommitError && (error.reason === "overloaded" || error.reason === "unreachable"))
    return error.message;
  const databaseError = findDatabaseError(error);
  if (databaseError === undefined) return undefined;
  const hint = isDamage(databaseError) ? `. ${NEXT_STEP}` : "";
  return `the database cannot be used: ${databaseError.message}${hint}`;
};

const EXPLAINED_ERRORS = [
  TlsError,
  EncryptionKeyError,
  LockedError,
  DatabaseVersionError,
  UnsafeDatabaseError,
  BucketError,
  MetricsAddressError,
];
const FILE_ERRORS = new Set("EACCES EPERM EROFS ENOENT EEXIST ENOSPC EDQUOT ENOTDIR EISDIR".split(" "));

const getCode = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/** Returns SQLite's error about the disk or the file, which is the cause of a failed write. */
const findDatabaseError = (error: unknown): Error | undefined => {
  if (!(error instanceof Error)) return undefined;
  const isDatabaseError =
    "code" in error && /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|CORRUPT|NOTADB)/.test(String(error.code));
  return isDatabaseError ? error : findDatabaseError(error.cause);
};
