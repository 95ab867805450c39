// Second factors of users: which ones exist, whether a code is correct, and how it is used up. Used for sign-in, reauthentication,
// enrollment and disabling.
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { AppError } from "#base/errors.ts";
import { generateBytes } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { type AuditEntry, insertAudit } from "#db/reports/audit/audit.ts";
import {
  countRecoveryCodes,
  deleteRecoveryCodesByUser,
  findRecoveryCode,
  findTotpFactor,
  insertRecoveryCodes,
  insertTotpFactor,
  removeTotpFactor,
  type TotpFactor,
  useRecoveryCode,
  useTotpStep,
} from "#db/second-factors.ts";
import { listPasskeys } from "#db/users/passkeys.ts";
import type { User } from "#db/users/users.ts";
import type { FactorMethod } from "#schema/users/second-factor.ts";
import { generateRecoveryCodes, hashRecoveryCode } from "#src/authentication/recovery-codes.ts";
import { encodeBase32, findStep, SECRET_BYTES } from "#src/authentication/totp.ts";
import { Challenges } from "./challenges.ts";

// Limits wrong codes per account: after five, each further attempt has to wait, from a minute up to an hour. Only a user who is signed in
// or has proven the password gets this far, so others cannot lock them out. A correct code resets the limit.
const FREE_TRIES = 5;
const FIRST_WAIT_MS = 60_000;
const MAX_WAIT_MS = 3_600_000;
const MAX_ACCOUNTS = 10_000;

type FailedTries = { count: number; until: number };

class CodeLimit {
  readonly #clock: Clock;
  readonly #tries = new Map<string, FailedTries>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Counts an attempt as wrong until `forgive` is called, so that concurrent attempts are all counted. Rejects with 429 while the account
   * has to wait.
   */
  count(user_id: string): void {
    const now = this.#clock.monotonic();
    const { count, until } = this.#tries.get(user_id) ?? { count: 0, until: 0 };
    if (now < until) {
      const retry_after = Math.ceil((until - now) / 1000);
      throw new AppError("too_many_requests", "Too many wrong codes for this account.", {
        detail: `Try again in ${retry_after} seconds.`,
        retry_after,
      });
    }
    const wait = count + 1 < FREE_TRIES ? 0 : Math.min(FIRST_WAIT_MS * 2 ** (count + 1 - FREE_TRIES), MAX_WAIT_MS);
    this.#tries.delete(user_id);
    this.#tries.set(user_id, { count: Math.min(count + 1, 100), until: now + wait });
    const oldest = this.#tries.size > MAX_ACCOUNTS ? this.#tries.keys().next().value : undefined;
    if (oldest !== undefined) this.#tries.delete(oldest);
  }

  forgive(user_id: string): void {
    this.#tries.delete(user_id);
  }
}

type Deps = { readonly store: Store; readonly clock: Clock; readonly encryption: Encryption };
type Person = Pick<User, "id" | "username">;

export class SecondFactors {
  readonly challenges: Challenges;
  readonly limit: CodeLimit;
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.challenges = new Challenges(deps.clock, deps.encryption, deps.store.epoch);
    this.limit = new CodeLimit(deps.clock);
  }

  totp(user_id: string): Promise<TotpFactor | undefined> {
    return this.#deps.store.get(findTotpFactor({ user_id }));
  }

  async hasPasskeys(user_id: string): Promise<boolean> {
    return (await this.#deps.store.all(listPasskeys({ user_id }))).length > 0;
  }

  async recoveryCodesLeft(user_id: string): Promise<number> {
    return (await this.#deps.store.get(countRecoveryCodes({ user_id })))?.count ?? 0;
  }

  /** Returns the user's available second-factor methods. */
  async listMethods(user_id: string): Promise<FactorMethod[]> {
    const methods: FactorMethod[] = (await this.totp(user_id)) ? ["totp"] : [];
    if (await this.hasPasskeys(user_id)) methods.push("passkey");
    if (methods.length > 0 && (await this.recoveryCodesLeft(user_id)) > 0) methods.push("recovery_code");
    return methods;
  }

  /**
   * Returns the statements that use up this code, for the batch of the change it allows; the batch fails as `stale` when the code was used
   * in the meantime. Undefined when it is wrong or was used before. Rejects with 429 after too many wrong codes.
   */
  async redeem(user: Person, code: string): Promise<Statement[] | undefined> {
    this.limit.count(user.id);
    const statements = (await this.#redeemTotp(user.id, code)) ?? (await this.#redeemRecoveryCode(user, code));
    if (statements) this.limit.forgive(user.id);
    return statements;
  }

  createTotpSecret(): string {
    return encodeBase32(generateBytes(SECRET_BYTES));
  }

  /** Returns the time step of a code for a secret that is not stored yet. */
  findCodeStep(secret: string, code: string): number | undefined {
    return findStep(secret, normalizeCode(code), this.#deps.clock.now());
  }

  /** `step` is the time step of the code that confirmed the app. The batch fails as `constraint` when there is already an app. */
  addTotp(user: Person, secret: string, step: number): Statement[] {
    const now = this.#deps.clock.now();
    const sealed_secret = this.#deps.encryption.seal(secret, totpContext(user.id));
    return [
      insertTotpFactor({ user_id: user.id, sealed_secret, last_step: step, created_at: now }),
      this.audited(user, { action: "create", after: { kind: "totp" } }),
    ];
  }

  /** The batch fails as `stale` when there is no app. Removing the last factor also removes the recovery codes. */
  async removeTotp(user: Person): Promise<Statement[]> {
    return [
      removeTotpFactor(user.id),
      ...((await this.hasPasskeys(user.id)) ? [] : [deleteRecoveryCodesByUser(user.id)]),
      this.audited(user, { action: "delete", before: { kind: "totp" } }),
    ];
  }

  /** Returns ten new recovery codes that replace the existing ones. */
  renewRecoveryCodes(user: Person): { codes: string[]; statements: Statement[] } {
    const codes = generateRecoveryCodes();
    const created_at = this.#deps.clock.now();
    const rows = codes.map((code) => ({ user_id: user.id, code_hash: hashRecoveryCode(code) ?? "", created_at }));
    const [before, after] = [{ recovery_codes: "" }, { recovery_codes: "new" }];
    return {
      codes,
      statements: [
        deleteRecoveryCodesByUser(user.id),
        insertRecoveryCodes(rows),
        this.audited(user, { action: "write", before, after }),
      ],
    };
  }

  audited(user: Person, change: Pick<AuditEntry, "action" | "before" | "after" | "additional">): Statement {
    const base = { resource_type: "second_factor", resource_id: user.id, target: user.username } as const;
    return insertAudit({ ...base, ...change, now: this.#deps.clock.now() });
  }

  async #redeemTotp(user_id: string, code: string): Promise<Statement[] | undefined> {
    const factor = await this.totp(user_id);
    if (!factor) return undefined;
    const secret = this.#deps.encryption.open(factor.sealed_secret, totpContext(user_id));
    const step = this.findCodeStep(secret, code);
    return step === undefined || step <= factor.last_step ? undefined : [useTotpStep({ user_id, step })];
  }

  async #redeemRecoveryCode(user: Person, code: string): Promise<Statement[] | undefined> {
    const code_hash = hashRecoveryCode(code);
    if (!code_hash) return undefined;
    const found = await this.#deps.store.get(findRecoveryCode({ user_id: user.id, code_hash }));
    if (!found) return undefined;
    const [before, after] = [{ recovery_codes: "" }, { recovery_codes: "used" }];
    return [
      useRecoveryCode({ user_id: user.id, code_hash }),
      this.audited(user, { action: "write", before, after, additional: { recovery_code: "used" } }),
    ];
  }
}

/** Apps display codes in two groups of three digits. */
const normalizeCode = (code: string): string => code.replace(/[\s-]/g, "");

const totpContext = (user_id: string): string => `totp:${user_id}`;
