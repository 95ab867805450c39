// Whether a certificate leads to a trusted root, through certificates at hand. Nothing is fetched and no name is looked up.
import type { X509Certificate } from "node:crypto";
import { isTimely } from "./identity.ts";

/** No real chain is longer. */
const LONGEST = 6;

/** True when `leaf` is timely and signed, over timely certificates that may sign others, by one of the roots. */
export const leadsToRoot = (
  leaf: X509Certificate,
  { roots, others }: { roots: readonly X509Certificate[]; others: readonly X509Certificate[] },
  now: number,
): boolean => {
  const seen = new Set<string>();
  const climb = (certificate: X509Certificate, depth: number): boolean => {
    if (depth > LONGEST || seen.has(certificate.fingerprint256) || !isTimely(certificate, now)) return false;
    seen.add(certificate.fingerprint256);
    if (roots.some((root) => isTimely(root, now) && isSignedBy(certificate, root))) return true;
    return others.some((other) => isSignedBy(certificate, other) && climb(other, depth + 1));
  };
  return climb(leaf, 0);
};

const isSignedBy = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
  issuer.ca &&
  certificate.fingerprint256 !== issuer.fingerprint256 &&
  certificate.checkIssued(issuer) &&
  certificate.verify(issuer.publicKey);
