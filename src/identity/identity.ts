// What every cloud's check of an instance identity shares: the refusal, and the files an administrator trusts (setting
// `identity_certificates`). Nothing is ever fetched. Used by src/api/instance-identity.ts.
import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";

/** The identity proves nothing; the message says why and may be shown. */
export class IdentityError extends Error {
  override readonly name = "IdentityError";
}

/** Files are read again after this, since the keys of clouds change while a server runs. */
const FRESH_MS = 60_000;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The trusted files: `a/*.pem` (public certificates of cloud a, one for each region), `b/roots/*.pem` and `b/intermediates/*.pem`, and
 * `c/*.json` (JSON Web Key Sets). A PEM file may hold several certificates.
 */
export class IdentityFiles {
  readonly #directory: string | undefined;
  readonly #clock: Clock;
  readonly #read = new Map<string, { until: number; texts: readonly string[] }>();

  constructor(directory: string | undefined, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** The certificates in the files of this folder. Throws what the file system or a broken certificate throws. */
  certificates(folder: "a" | "b/roots" | "b/intermediates"): X509Certificate[] {
    const blocks = this.#texts(folder, ".pem").flatMap((text) => text.match(PEM) ?? []);
    return blocks.map((block) => new X509Certificate(block));
  }

  /** The parsed key sets of cloud c. */
  keySets(): unknown[] {
    return this.#texts("c", ".json").map((text) => JSON.parse(text) as unknown);
  }

  #texts(folder: string, suffix: string): readonly string[] {
    if (this.#directory === undefined) return [];
    const now = this.#clock.monotonic();
    const known = this.#read.get(folder);
    if (known && known.until > now) return known.texts;
    const texts = filesIn(join(this.#directory, folder), suffix).map((file) => readFileSync(file, "utf8"));
    this.#read.set(folder, { until: now + FRESH_MS, texts });
    return texts;
  }
}

const filesIn = (folder: string, suffix: string): string[] => {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(suffix));
    return names.sort().map((name) => join(folder, name));
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return [];
    throw error;
  }
};

/** Whether `now` (milliseconds since 1970) lies within the certificate's time. */
export const isTimely = ({ validFrom, validTo }: X509Certificate, now: number): boolean =>
  Date.parse(validFrom) <= now && now <= Date.parse(validTo);

/** A text member of a parsed document. Throws `IdentityError` when it is not there. */
export const textIn = (document: unknown, ...path: string[]): string => {
  let value = document;
  for (const name of path) {
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  }
  if (typeof value !== "string" || value === "") throw new IdentityError(`it has no ${path.join(".")}`);
  return value;
};

/** The bytes of strict base64, line ends allowed. Throws `IdentityError`. */
export const base64Of = (text: string): Buffer => {
  const plain = text.replace(/\s+/g, "");
  if (plain === "" || !/^[A-Za-z0-9+/]+={0,2}$/.test(plain)) throw new IdentityError("the signature is not base64");
  return Buffer.from(plain, "base64");
};
