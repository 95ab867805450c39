// What goes wrong with home backups, in words for people.

/** The message finishes a sentence of its own. `isDamage`: what is stored is not what was stored. */
export class HomeBackupError extends Error {
  override readonly name = "HomeBackupError";
  readonly isDamage: boolean;

  constructor(message: string, { isDamage = false, cause }: { isDamage?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isDamage = isDamage;
  }
}
