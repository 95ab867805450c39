// Why `serve` cannot start, where that is a state of this machine and no defect of the program. Everything else keeps its stack.
import { address } from "#base/config/kinds.ts";
import type { Config } from "#base/config.ts";
import { EncryptionKeyError } from "#base/encryption.ts";
import { TlsError } from "#base/tls.ts";
import { LockedError } from "#db/lock.ts";
import { NewerDatabaseError } from "#db/migrate.ts";

/** Words for what is no defect but a state of this machine; undefined for everything else. */
export function reasonForPeople(error: unknown, config: Config): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const isWords = [TlsError, EncryptionKeyError, LockedError, NewerDatabaseError].some((kind) => error instanceof kind);
  if (isWords) return error.message;
  const code = "code" in error ? String(error.code) : "";
  const at = address.print(config.address);
  if (code === "EADDRINUSE") return `${at} is in use by another program; choose another with --address`;
  if (code === "EADDRNOTAVAIL") return `${at} is no address of this machine; choose another with --address`;
  if (["EACCES", "EROFS", "ENOENT", "ENOSPC", "ENOTDIR"].includes(code))
    return `${error.message} (data directory ${config.data_dir})`;
  const refused = refusedByDatabase(error);
  return refused && `the database cannot be used: ${refused.message} (data directory ${config.data_dir})`;
}

/** What SQLite said of the disk or of the file, which a write that failed has as its cause. */
const refusedByDatabase = (error: unknown): Error | undefined => {
  if (!(error instanceof Error)) return undefined;
  const ours = "code" in error && /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|CORRUPT|NOTADB)/.test(String(error.code));
  return ours ? error : refusedByDatabase(error.cause);
};
