// The server's certificate and key from files, looked at before they are used, so that a mistake is said in words at the start.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { rfc3339 } from "./clock.ts";
import type { Config } from "./config.ts";

/** A certificate or key that cannot be used; the message says why and holds nothing of the key. */
export class TlsError extends Error {
  override readonly name = "TlsError";
}

export type Tls = { cert: string; key: string; expires_at: number };

/** Undefined without the settings. Throws `TlsError`. */
export const readTls = ({ tls_cert_file, tls_key_file }: Config, now: number): Tls | undefined => {
  if (tls_cert_file === undefined || tls_key_file === undefined) return undefined;
  const cert = read("tls_cert_file", tls_cert_file);
  const key = read("tls_key_file", tls_key_file);
  const certificate = made(
    `tls_cert_file: ${tls_cert_file} holds no certificate in PEM form`,
    () => new X509Certificate(cert),
  );
  const secret = made(`tls_key_file: ${tls_key_file} holds no private key in PEM form without a password`, () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(secret))
    throw new TlsError(`the key in ${tls_key_file} is not that of ${tls_cert_file}`);
  const expires_at = Date.parse(certificate.validTo);
  if (expires_at < now) throw new TlsError(`the certificate in ${tls_cert_file} has expired: ${rfc3339(expires_at)}`);
  return { cert, key, expires_at };
};

const read = (setting: string, path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new TlsError(`${setting}: ${(error as Error).message}`);
  }
};

const made = <T>(otherwise: string, make: () => T): T => {
  try {
    return make();
  } catch {
    throw new TlsError(otherwise);
  }
};
