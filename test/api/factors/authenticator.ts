// A software authenticator for tests: it creates passkeys and responds like a browser (WebAuthn level 3, ES256, attestation "none"), and
// can send false data on request.
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
const b64 = (data: Uint8Array | string): string => Buffer.from(data).toString("base64url");

/** Encodes the part of CBOR needed for attestation: small integers, bytes, texts, maps. */
const cbor = (value: unknown): Buffer => {
  const head = (major: number, length: number): Buffer =>
    length < 24
      ? Buffer.from([(major << 5) | length])
      : length < 256
        ? Buffer.from([(major << 5) | 24, length])
        : Buffer.from([(major << 5) | 25, length >> 8, length & 255]);
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  const entries = [...(value as Map<unknown, unknown>)];
  return Buffer.concat([head(5, entries.length), ...entries.flatMap(([key, one]) => [cbor(key), cbor(one)])]);
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
    const cose = cbor(
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
    const attestation = cbor(
      new Map<string, unknown>([
        ["fmt", "none"],
        ["attStmt", new Map()],
        ["authData", authData],
      ]),
    );
    return this.#answer(credential, {
      clientDataJSON: b64(this.#client("webauthn.create", challenge, lies)),
      attestationObject: b64(attestation),
      transports: ["internal"],
    });
  }

  /** Signs with a requested passkey, or the newest, like `navigator.credentials.get`. */
  get(options: Options, lies: Lies = {}): Answer {
    const { challenge, allowCredentials = [] } = options as { challenge: string; allowCredentials?: { id: string }[] };
    const ids = allowCredentials.map(({ id }) => id);
    const credential = this.#credentials.findLast(({ id }) => ids.length === 0 || ids.includes(b64(id)));
    if (!credential) throw new Error("it has no such passkey");
    credential.counter = lies.counter ?? credential.counter + 1;
    const authData = this.#head(lies.rp ?? credential.rp, lies, 0, credential.counter);
    const client = this.#client("webauthn.get", challenge, lies);
    return this.#answer(credential, {
      clientDataJSON: b64(client),
      authenticatorData: b64(authData),
      signature: b64(sign("sha256", Buffer.concat([authData, sha256(client)]), credential.key)),
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
    return { id: b64(id), rawId: b64(id), type: "public-key", response, clientExtensionResults: {} };
  }
}
