// Verifies AWS instance identities: a JSON document and an RSA signature (PKCS#1 v1.5, SHA-256) by the region's certificate (facts/platform
// 8.3). Rejects documents without a signature of a trusted certificate.

import { verify } from "node:crypto";
import { parseJson } from "#base/json/read.ts";
import { decodeBase64, getText, IdentityError, type IdentityFiles, isValidAt } from "./identity.ts";

/** Returns the instance ID in the document. `now` is in milliseconds since 1970. Throws `IdentityError`. */
export const verifyAwsIdentity = (
  files: IdentityFiles,
  { document, signature }: { document: string; signature: string },
  now: number,
): string => {
  const bytes = decodeBase64(signature);
  const content = Buffer.from(document);
  const trusted = files.regions.list().filter((certificate) => isValidAt(certificate, now));
  if (trusted.length === 0) throw new IdentityError("this server trusts no certificate of that cloud");
  const isSigned = trusted.some(
    ({ publicKey }) => publicKey.asymmetricKeyType === "rsa" && verify("RSA-SHA256", content, publicKey, bytes),
  );
  if (!isSigned) throw new IdentityError("no trusted certificate has signed the document");
  return getText(parseDocument(document), "instanceId");
};

const parseDocument = (document: string): unknown => {
  try {
    return parseJson(document);
  } catch {
    throw new IdentityError("the document is not JSON");
  }
};
