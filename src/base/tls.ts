// Loads the server's certificate and key from files and validates them, so that mistakes are reported at startup.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { toRfc3339 } from "./clock.ts";
import type { Config } from "./config.ts";

/** Thrown for an unusable certificate or key; the message gives the reason and contains no part of the key. */
export class TlsError extends Error {
  override readonly name = "TlsError";
}

export type Tls = { cert: string; key: string; expires_at: number };

/** Returns undefined when the settings are not set. Throws `TlsError`. */
export const readTls = ({ tls_cert_file, tls_key_file }: Config, now: number): Tls | undefined => {
  if (tls_cert_file === undefined || tls_key_file === undefined) return undefined;
  const cert = readFile("tls_cert_file", tls_cert_file);
  const key = readFile("tls_key_file", tls_key_file);
  const certificate = withTlsError(
    `tls_cert_file: ${tls_cert_file} holds no certificate in PEM form`,
    () => new X509Certificate(cert),
  );
  const secret = withTlsError(`tls_key_file: ${tls_key_file} holds no private key in PEM form without a password`, () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(secret))
    throw new TlsError(`the key in ${tls_key_file} is not that of ${tls_cert_file}`);
  const expires_at = Date.parse(certificate.validTo);
  if (expires_at < now) throw new TlsError(`the certificate in ${tls_cert_file} has expired: ${toRfc3339(expires_at)}`);
  return { cert, key, expires_at };
};

const readFile = (setting: string, path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new TlsError(`${setting}: ${(error as Error).message}`);
  }
};

const withTlsError = <T>(message: string, make: () => T): T => {
  try {
    return make();
  } catch {
    throw new TlsError(message);
  }
};
