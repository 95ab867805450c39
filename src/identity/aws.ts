// Verifies AWS instance identities: a JSON document and an RSA signature (PKCS#1 v1.5, SHA-256) by the region's certificate (facts/platform
// 8.3). Rejects everything that none of the trusted certificates has signed.

import { verify } from "node:crypto";
import { parseJson } from "#base/json/read.ts";
import { decodeBase64, getText, IdentityError, type IdentityFiles, isTimely } from "./identity.ts";

/** Returns the instance ID in the document. `now` is in milliseconds since 1970. Throws `IdentityError`. */
export const verifyAwsIdentity = (
  files: IdentityFiles,
  { document, signature }: { document: string; signature: string },
  now: number,
): string => {
  const bytes = decodeBase64(signature);
  const signed = Buffer.from(document);
  const trusted = files.regions.list().filter((certificate) => isTimely(certificate, now));
  if (trusted.length === 0) throw new IdentityError("this server trusts no certificate of that cloud");
  const isGood = trusted.some(
    ({ publicKey }) => publicKey.asymmetricKeyType === "rsa" && verify("RSA-SHA256", signed, publicKey, bytes),
  );
  if (!isGood) throw new IdentityError("no trusted certificate has signed the document");
  return getText(parseDocument(document), "instanceId");
};

const parseDocument = (document: string): unknown => {
  try {
    return parseJson(document);
  } catch {
    throw new IdentityError("the document is not JSON");
  }
};
