// Why a verb cannot do its work, where that is a state of this machine and no defect of the program. Everything else keeps its stack.
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

/** Words for what keeps `serve` from starting; undefined for a defect. */
export function reasonForPeople(error: unknown, config: Config): string | undefined {
  const code = getCode(error);
  const at = address.print(config.address);
  if (code === "EADDRINUSE") return `${at} is in use by another program; choose another with --address`;
  if (code === "EADDRNOTAVAIL") return `${at} is not an address of this machine; choose another with --address`;
  const reason = machineReason(error);
  const isOfFolder = FILES.has(code) || refusedByDatabase(error) !== undefined;
  return reason && isOfFolder ? `${reason} (data directory ${config.data_dir})` : reason;
}

/** Words for what a disk, a file or the database has refused to any verb; undefined for a defect, which keeps its stack. */
export const machineReason = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined;
  if (IN_WORDS.some((kind) => error instanceof kind) || FILES.has(getCode(error))) return error.message;
  // A database that is away says no more than that.
  if (error instanceof CommitError && (error.reason === "overloaded" || error.reason === "unreachable"))
    return error.message;
  const refused = refusedByDatabase(error);
  if (refused === undefined) return undefined;
  const next = isDamage(refused) ? `. ${NEXT_STEP}` : "";
  return `the database cannot be used: ${refused.message}${next}`;
};

const IN_WORDS = [
  TlsError,
  EncryptionKeyError,
  LockedError,
  DatabaseVersionError,
  UnsafeDatabaseError,
  BucketError,
  MetricsAddressError,
];
const FILES = new Set("EACCES EPERM EROFS ENOENT EEXIST ENOSPC EDQUOT ENOTDIR EISDIR".split(" "));

const getCode = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/** What SQLite said of the disk or of the file, which a write that failed has as its cause. */
const refusedByDatabase = (error: unknown): Error | undefined => {
  if (!(error instanceof Error)) return undefined;
  const ours = "code" in error && /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|CORRUPT|NOTADB)/.test(String(error.code));
  return ours ? error : refusedByDatabase(error.cause);
};
