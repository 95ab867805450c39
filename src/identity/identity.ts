// Shared code of the instance identity checks: the error, and the files that an administrator trusts (setting `identity_certificates`).
// Nothing is fetched. Used by src/api/agents/instance-identity.ts.
import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";

/** Thrown for an invalid identity. The message has the reason and may be shown. */
export class IdentityError extends Error {
  override readonly name = "IdentityError";
}

/** Files are reloaded after this time, because clouds rotate their keys while a server runs. */
const CACHE_TTL_MS = 60_000;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The trusted files: `a/*.pem` (AWS's public certificates, one per region), `b/roots/*.pem` and `b/intermediates/*.pem` (Azure), and
 * `c/*.json` (Google Cloud's JSON Web Key Sets). A PEM file may contain several certificates.
 */
export class IdentityFiles {
  readonly regions: Folder<X509Certificate>;
  readonly roots: Folder<X509Certificate>;
  readonly intermediates: Folder<X509Certificate>;
  readonly keySets: Folder<unknown>;

  constructor(directory: string | undefined, clock: Clock) {
    const toFolder = (folder: string) => (directory === undefined ? undefined : join(directory, folder));
    this.regions = new Folder(toFolder("a"), ".pem", parseCertificates, clock);
    this.roots = new Folder(toFolder("b/roots"), ".pem", parseCertificates, clock);
    this.intermediates = new Folder(toFolder("b/intermediates"), ".pem", parseCertificates, clock);
    this.keySets = new Folder<unknown>(toFolder("c"), ".json", (text) => [JSON.parse(text)], clock);
  }
}

/** The parsed files of one folder, loaded on demand and cached for a minute. Unreadable files are skipped. */
class Folder<T> {
  readonly #path: string | undefined;
  readonly #suffix: string;
  readonly #parse: (text: string) => T[];
  readonly #clock: Clock;
  #cached: { until: number; values: readonly T[] } | undefined;

  constructor(path: string | undefined, suffix: string, parse: (text: string) => T[], clock: Clock) {
    this.#path = path;
    this.#suffix = suffix;
    this.#parse = parse;
    this.#clock = clock;
  }

  list(): readonly T[] {
    const now = this.#clock.monotonic();
    if (this.#cached && this.#cached.until > now) return this.#cached.values;
    const files = this.#path === undefined ? [] : listFiles(this.#path, this.#suffix);
    const values = files.flatMap((file) => this.#read(file));
    this.#cached = { until: now + CACHE_TTL_MS, values };
    return values;
  }

  #read(file: string): T[] {
    try {
      return this.#parse(readFileSync(file, "utf8"));
    } catch (error) {
      log("identity").error("{file} is not trusted, because it cannot be read: {error}", { file, error });
      return [];
    }
  }
}

const parseCertificates = (text: string): X509Certificate[] =>
  (text.match(PEM) ?? []).map((block) => new X509Certificate(block));

const listFiles = (folder: string, suffix: string): string[] => {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(suffix));
    return names.sort().map((name) => join(folder, name));
  } catch (error) {
    log("identity").warn("nothing is trusted from {folder}: {error}", { folder, error });
    return [];
  }
};

/** Returns whether `now` (milliseconds since 1970) is within the certificate's validity period. */
export const isValidAt = ({ validFrom, validTo }: X509Certificate, now: number): boolean =>
  Date.parse(validFrom) <= now && now <= Date.parse(validTo);

/** Returns a text member of a parsed document. Throws `IdentityError` if it is missing. */
export const getText = (document: unknown, ...path: string[]): string => {
  let value = document;
  for (const name of path) {
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  }
  if (typeof value !== "string" || value === "") throw new IdentityError(`it has no ${path.join(".")}`);
  return value;
};

/** Decodes strict base64; line breaks are allowed. Throws `IdentityError`. */
export const decodeBase64 = (text: string): Buffer => {
  const plain = text.replace(/\s+/g, "");
  if (plain === "" || !/^[A-Za-z0-9+/]+={0,2}$/.test(plain)) throw new IdentityError("the signature is not base64");
  return Buffer.from(plain, "base64");
};
