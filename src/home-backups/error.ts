// Errors of home backups, with messages for people.

/** The message is a complete sentence. `isDamage`: stored data differs from what was written. */
export class HomeBackupError extends Error {
  override readonly name = "HomeBackupError";
  readonly isDamage: boolean;

  constructor(message: string, { isDamage = false, cause }: { isDamage?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isDamage = isDamage;
  }
}
