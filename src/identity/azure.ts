// Verifies Azure instance identities: a signed PKCS#7 message with its content (facts/platform 8.3). The signer's certificate must have one
// of the cloud's names and a chain to a trusted root. Weak digests, several signers and expired documents are rejected.

import { X509Certificate } from "node:crypto";
import { fromBER } from "asn1js";
import { Certificate, ContentInfo, CryptoEngine, SignedData } from "pkijs";
import { parseJson } from "#base/json/read.ts";
import { decodeBase64, getText, IdentityError, type IdentityFiles, isValidAt } from "./identity.ts";

const SIGNER_NAMES = ["metadata.azure.com", "metadata.azure.us", "metadata.azure.cn", "metadata.microsoftazure.de"];
const COMMON_NAME = "2.5.4.3";
const SIGNED_DATA = "1.2.840.113549.1.7.2";
/** SHA-256, SHA-384, SHA-512. */
const DIGESTS = ["2.16.840.1.101.3.4.2.1", "2.16.840.1.101.3.4.2.2", "2.16.840.1.101.3.4.2.3"];
const MAX_CERTIFICATES = 8;
// The cast is needed because the types of pkijs lag behind the platform's `Crypto` type. pkijs does not use the newer members.
const engine = new CryptoEngine({ name: "platform", crypto: globalThis.crypto }) as unknown as NonNullable<
  Parameters<SignedData["verify"]>[1]
>;

/** Returns the virtual machine's ID in the message. `now` is in milliseconds since 1970. Throws `IdentityError`. */
export const verifyAzureIdentity = async (files: IdentityFiles, signature: string, now: number): Promise<string> => {
  const message = readMessage(decodeBase64(signature));
  const content = message.encapContentInfo.eContent?.getValue();
  const [signer] = message.signerInfos;
  if (!content || !signer || message.signerInfos.length !== 1) {
    throw new IdentityError("the message must have its content inside and one signer");
  }
  if (!DIGESTS.includes(signer.digestAlgorithm.algorithmId)) throw new IdentityError("the message uses a weak digest");
  const certificate = await findSigner(message);
  if (!hasSignerName(certificate))
    throw new IdentityError("the signer's certificate does not have a name of Azure's metadata service");
  const enclosed = (message.certificates ?? []).filter((one) => one instanceof Certificate).map(toX509);
  // A real message contains two or three certificates. The limit keeps the search short for a forged message.
  if (enclosed.length > MAX_CERTIFICATES) throw new IdentityError("the message contains too many certificates");
  const roots = files.roots.list();
  const others = [...enclosed, ...files.intermediates.list()];
  if (!hasTrustedChain(toX509(certificate), { roots, others }, now)) {
    throw new IdentityError("the signer does not lead to a trusted root");
  }
  const document = parseDocument(Buffer.from(content).toString("utf8"));
  if (parseExpiry(document) < now) throw new IdentityError("the document is past its time");
  return getText(document, "vmId");
};

const readMessage = (bytes: Buffer): SignedData => {
  try {
    const { result, offset } = fromBER(new Uint8Array(bytes));
    if (offset === -1) throw new Error(result.error);
    const outer = new ContentInfo({ schema: result });
    if (outer.contentType !== SIGNED_DATA) throw new Error("not signed data");
    return new SignedData({ schema: outer.content });
  } catch {
    throw new IdentityError("the signature is not a signed PKCS#7 message");
  }
};

/** Returns the enclosed certificate whose key signed the content. */
const findSigner = async (message: SignedData): Promise<Certificate> => {
  try {
    const options = { signer: 0, checkChain: false, extendedMode: true } as const;
    const { signatureVerified, signerCertificate } = await message.verify(options, engine);
    if (signatureVerified && signerCertificate) return signerCertificate;
  } catch {
    // Reported below, without details about a forged message.
  }
  throw new IdentityError("the message was altered or its signer is not enclosed");
};

const hasSignerName = ({ subject }: Certificate): boolean => {
  const [name, ...otherNames] = subject.typesAndValues.filter(({ type }) => type === COMMON_NAME);
  if (!name || otherNames.length > 0) return false;
  const text = String(name.value.valueBlock.value).toLowerCase();
  return SIGNER_NAMES.some((one) => text === one || text.endsWith(`.${one}`));
};

const toX509 = (certificate: Certificate): X509Certificate =>
  new X509Certificate(Buffer.from(certificate.toSchema(true).toBER()));

const parseDocument = (text: string): unknown => {
  try {
    return parseJson(text);
  } catch {
    throw new IdentityError("the document is not JSON");
  }
};

/** Parses `timeStamp.expiresOn`, such as `11/28/26 06:30:37 -0000`, as milliseconds since 1970; Infinity if the document has none. */
const parseExpiry = (document: unknown): number => {
  if (typeof document !== "object" || document === null || !("timeStamp" in document)) return Number.POSITIVE_INFINITY;
  const text = getText(document, "timeStamp", "expiresOn");
  const match = /^(\d\d)\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d) ([+-]\d\d)(\d\d)$/.exec(text);
  const [, month, day, year, time, hours, minutes] = match ?? [];
  const expiresAt = Date.parse(`20${year}-${month}-${day}T${time}${hours === "-00" ? "+00" : hours}:${minutes}`);
  if (Number.isNaN(expiresAt)) throw new IdentityError("the time of the document cannot be read");
  return expiresAt;
};

/** Maximum length of a chain, longer than any real one. */
const MAX_CHAIN_LENGTH = 6;

/** Returns whether `leaf` is valid now and has a chain to one of the roots, through valid certificates that may sign others. */
const hasTrustedChain = (
  leaf: X509Certificate,
  { roots, others }: { roots: readonly X509Certificate[]; others: readonly X509Certificate[] },
  now: number,
): boolean => {
  const visited = new Set<string>();
  const isTrusted = (certificate: X509Certificate, depth: number): boolean => {
    if (depth > MAX_CHAIN_LENGTH || visited.has(certificate.fingerprint256) || !isValidAt(certificate, now))
      return false;
    visited.add(certificate.fingerprint256);
    if (roots.some((root) => isValidAt(root, now) && isSignedBy(certificate, root))) return true;
    return others.some((other) => isSignedBy(certificate, other) && isTrusted(other, depth + 1));
  };
  return isTrusted(leaf, 0);
};

const isSignedBy = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
  issuer.ca &&
  certificate.fingerprint256 !== issuer.fingerprint256 &&
  certificate.checkIssued(issuer) &&
  certificate.verify(issuer.publicKey);
