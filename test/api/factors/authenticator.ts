// A software authenticator for tests. It creates passkeys and responds like a browser (WebAuthn level 3, ES256, attestation "none"). On
// request, it sends false data.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

type Options = Readonly<Record<string, unknown>>;
type Credential = { id: Buffer; key: KeyObject; user: string; rp: string; counter: number };

/** Deviations from an honest authenticator. */
export type Lies = { origin?: string; rp?: string; verified?: boolean; challenge?: string; counter?: number };

export type Answer = {
  id: string;
  rawId: string;
  type: string;
  response: Record<string, unknown>;
  clientExtensionResults: object;
};

const sha256 = (data: string | Buffer): Buffer => createHash("sha256").update(data).digest();
const encodeBase64 = (data: Uint8Array | string): string => Buffer.from(data).toString("base64url");

/** Encodes the part of CBOR needed for attestation: small integers, bytes, texts, maps. */
const encodeCbor = (value: unknown): Buffer => {
  const encodeHead = (major: number, length: number): Buffer =>
    length < 24
      ? Buffer.from([(major << 5) | length])
      : length < 256
        ? Buffer.from([(major << 5) | 24, length])
        : Buffer.from([(major << 5) | 25, length >> 8, length & 255]);
  if (typeof value === "number") return value < 0 ? encodeHead(1, -1 - value) : encodeHead(0, value);
  if (typeof value === "string") return Buffer.concat([encodeHead(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([encodeHead(2, value.length), value]);
  const entries = [...(value as Map<unknown, unknown>)];
  return Buffer.concat([
    encodeHead(5, entries.length),
    ...entries.flatMap(([key, item]) => [encodeCbor(key), encodeCbor(item)]),
  ]);
};

export class Authenticator {
  readonly #origin: string;
  readonly #credentials: Credential[] = [];

  /** `origin`: the origin of the page. */
  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Creates a passkey, like `navigator.credentials.create`. */
  create(options: Options, lies: Lies = {}): Answer {
    const { rp, user, challenge } = options as { rp: { id: string }; user: { id: string }; challenge: string };
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const { x = "", y = "" } = publicKey.export({ format: "jwk" });
    const credential = { id: randomBytes(32), key: privateKey, user: user.id, rp: rp.id, counter: 1 };
    this.#credentials.push(credential);
    const cose = encodeCbor(
      new Map<number, unknown>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x, "base64url")],
        [-3, Buffer.from(y, "base64url")],
      ]),
    );
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, 32]), credential.id, cose]);
    const authData = Buffer.concat([this.#head(lies.rp ?? rp.id, lies, 0x40, 1), attested]);
    const attestation = encodeCbor(
      new Map<string, unknown>([
        ["fmt", "none"],
        ["attStmt", new Map()],
        ["authData", authData],
      ]),
    );
    return this.#answer(credential, {
      clientDataJSON: encodeBase64(this.#client("webauthn.create", challenge, lies)),
      attestationObject: encodeBase64(attestation),
      transports: ["internal"],
    });
  }

  /** Signs with a requested passkey, or the newest, like `navigator.credentials.get`. */
  get(options: Options, lies: Lies = {}): Answer {
    const { challenge, allowCredentials = [] } = options as { challenge: string; allowCredentials?: { id: string }[] };
    const ids = allowCredentials.map(({ id }) => id);
    const credential = this.#credentials.findLast(({ id }) => ids.length === 0 || ids.includes(encodeBase64(id)));
    if (!credential) throw new Error("the authenticator has no such passkey");
    credential.counter = lies.counter ?? credential.counter + 1;
    const authData = this.#head(lies.rp ?? credential.rp, lies, 0, credential.counter);
    const client = this.#client("webauthn.get", challenge, lies);
    return this.#answer(credential, {
      clientDataJSON: encodeBase64(client),
      authenticatorData: encodeBase64(authData),
      signature: encodeBase64(sign("sha256", Buffer.concat([authData, sha256(client)]), credential.key)),
      userHandle: credential.user,
    });
  }

  #head(rp: string, { verified = true }: Lies, flags: number, counter: number): Buffer {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([sha256(rp), Buffer.from([flags | (verified ? 0x05 : 0x01)]), count]);
  }

  #client(type: string, challenge: string, lies: Lies): Buffer {
    const origin = lies.origin ?? this.#origin;
    return Buffer.from(JSON.stringify({ type, challenge: lies.challenge ?? challenge, origin, crossOrigin: false }));
  }

  #answer({ id }: Credential, response: Record<string, unknown>): Answer {
    return { id: encodeBase64(id), rawId: encodeBase64(id), type: "public-key", response, clientExtensionResults: {} };
  }
}
