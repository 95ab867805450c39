// Whether who answers at a node's address is a node of this cluster, by its certificate. Nodes have one certificate, or certificates for
// the same name: the one that clients use, which is not the name at which nodes reach each other.
import { X509Certificate } from "node:crypto";

/** The certificate of this node, from PEM: of a chain the first, which is its own. */
export const parseCertificate = (pem: string): X509Certificate => new X509Certificate(pem);

/** `isTrusted`: its chain leads to an authority that this machine trusts. Another certificate of the same name is one that was renewed. */
export const isNode = (peer: X509Certificate | undefined, isTrusted: boolean, own: X509Certificate): boolean => {
  if (!peer) return false;
  if (peer.fingerprint256 === own.fingerprint256) return true;
  return isTrusted && listNames(own).some((name) => peer.checkHost(name) !== undefined);
};

/**
 * Whether the chain leads to an authority that this machine trusts, by what the handshake found wrong. The address at which a node is reached need not
 * be in its certificate. Bun's own word, alongside it, is about that address alone: it is true of a certificate that its owner has signed.
 */
export const isGivenByAuthority = (problem: Error | null | undefined): boolean =>
  !problem || (problem as { code?: string }).code === "ERR_TLS_CERT_ALTNAME_INVALID";

/** Names, without stars, which `checkHost` does not take: `*.example.com` is asked for as `node.example.com`. */
const listNames = ({ subjectAltName = "" }: X509Certificate): string[] =>
  subjectAltName.split(", ").flatMap((one) => (one.startsWith("DNS:") ? [one.slice(4).replace(/^\*/, "node")] : []));
