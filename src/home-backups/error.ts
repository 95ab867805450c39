// Errors of home backups, with messages for people.

/** The message is a sentence of its own. `isDamage`: stored data is not what was written. */
export class HomeBackupError extends Error {
  override readonly name = "HomeBackupError";
  readonly isDamage: boolean;

  constructor(message: string, { isDamage = false, cause }: { isDamage?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isDamage = isDamage;
  }
}
