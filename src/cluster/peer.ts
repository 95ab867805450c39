// Decides by certificate whether a peer is a node of this cluster. Nodes share one certificate, or have certificates for the same name: the
// name that clients use, not the address at which nodes reach each other.
import { X509Certificate } from "node:crypto";

/** Parses this node's certificate from PEM: the first of a chain. */
export const parseCertificate = (pem: string): X509Certificate => new X509Certificate(pem);

/**
 * Returns whether the peer's certificate is the same as this node's, or a trusted one for the same name, such as a renewed one.
 * `isTrusted`: its chain leads to an authority that this machine trusts.
 */
export const isNode = (peer: X509Certificate | undefined, isTrusted: boolean, own: X509Certificate): boolean => {
  if (!peer) return false;
  if (peer.fingerprint256 === own.fingerprint256) return true;
  return isTrusted && listNames(own).some((name) => peer.checkHost(name) !== undefined);
};

/**
 * Returns whether the chain leads to an authority that this machine trusts, according to the handshake's error. A wrong address is not an
 * error here, because a node's address need not be in its certificate. Bun's `authorized` flag is not used: it is true even for a
 * self-signed certificate.
 */
export const isIssuedByAuthority = (problem: Error | null | undefined): boolean =>
  !problem || (problem as { code?: string }).code === "ERR_TLS_CERT_ALTNAME_INVALID";

/** Returns the certificate's names for `checkHost`, which accepts no wildcards: `*.example.com` becomes `node.example.com`. */
const listNames = ({ subjectAltName = "" }: X509Certificate): string[] =>
  subjectAltName.split(", ").flatMap((one) => (one.startsWith("DNS:") ? [one.slice(4).replace(/^\*/, "node")] : []));
