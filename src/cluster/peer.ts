// Decides by certificate whether a peer is a node of this cluster. Nodes share one certificate, or have certificates for the same name: the
// one clients use, which is not the name at which nodes reach each other.
import { X509Certificate } from "node:crypto";

/** Parses this node's certificate from PEM: the first of a chain. */
export const parseCertificate = (pem: string): X509Certificate => new X509Certificate(pem);

/** `isTrusted`: its chain leads to an authority that this machine trusts. A different certificate for the same name is a renewed one. */
export const isNode = (peer: X509Certificate | undefined, isTrusted: boolean, own: X509Certificate): boolean => {
  if (!peer) return false;
  if (peer.fingerprint256 === own.fingerprint256) return true;
  return isTrusted && listNames(own).some((name) => peer.checkHost(name) !== undefined);
};

/**
 * Returns whether the chain leads to an authority that this machine trusts, judging by the handshake's error. A node's address need not be
 * in its certificate. Bun's own `authorized` flag reflects only the address, and is true even for a self-signed certificate.
 */
export const isGivenByAuthority = (problem: Error | null | undefined): boolean =>
  !problem || (problem as { code?: string }).code === "ERR_TLS_CERT_ALTNAME_INVALID";

/** Returns names without wildcards, which `checkHost` does not accept: `*.example.com` becomes `node.example.com`. */
const listNames = ({ subjectAltName = "" }: X509Certificate): string[] =>
  subjectAltName.split(", ").flatMap((one) => (one.startsWith("DNS:") ? [one.slice(4).replace(/^\*/, "node")] : []));
