// Hashing passwords: argon2id on Bun's threads, a few at a time, because each takes 19 MiB and a core; a flood of sign-ins waits in
// a bounded queue and is then refused (rule ID-6). Used by everything that sets or checks a password.
import { AppError } from "#base/errors.ts";

/** OWASP's recommendation for argon2id: 19 MiB, two passes. */
const OPTIONS = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** A hash of a forgotten random password, so that an unknown user costs the same work as a wrong password (rule ID-4). */
const NOBODYS =
  "$argon2id$v=19$m=19456,t=2,p=1$XUf6h9tIF+LGxSly+B9G4+uRww8DCdr7/we6G5JP0cg$YrVMLo3cc+0Yk5Bd2hHc9fP7oPNtgcyPbws37hMqTTI";

const AT_ONCE = 2;
const WAITING = 64;

export class Passwords {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  hash(password: string): Promise<string> {
    return this.#turn(() => Bun.password.hash(password, OPTIONS));
  }

  /** False also when there is no hash, after the same work. */
  verify(password: string, hash: string | undefined): Promise<boolean> {
    return this.#turn(async () => (await Bun.password.verify(password, hash || NOBODYS)) && Boolean(hash));
  }

  async #turn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < AT_ONCE) this.#running++;
    else if (this.#waiting.length >= WAITING) throw new AppError("overloaded", "Too many people sign in at once.");
    // Whoever ends hands its place on, so the count stays.
    else await new Promise<void>((go) => this.#waiting.push(go));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}

const COMMON = new Set(
  "password password1 passw0rd 12345678 123456789 1234567890 qwertyui qwertyuiop iloveyou sunshine princess football baseball superman trustno1 letmein1 welcome1 changeme admin123 administrator".split(
    " ",
  ),
);

/** What is wrong with a new password, in words for people; empty when nothing is. */
export const passwordProblem = (password: string): string => {
  const length = [...password].length;
  if (length < 8) return "Use at least 8 characters.";
  if (length > 128) return "Use at most 128 characters.";
  if (new Set(password).size < 4) return "Use more different characters.";
  if (COMMON.has(password.toLowerCase())) return "This password is one of the first that others would try.";
  return "";
};
