// Web push: encrypts a message for one browser (RFC 8291, `aes128gcm` of RFC 8188) and signs the request to its push service (VAPID, RFC
// 8292). Pure except for random bytes; the caller sends the request.
import { createCipheriv, createECDH, createPrivateKey, generateKeyPairSync, hkdfSync, sign } from "node:crypto";
import { generateBytes } from "#base/ids.ts";

/** The browser's keys, base64url. */
export type PushKeys = { readonly p256dh: string; readonly auth: string };
/** The server's keys for push services, base64url. */
export type VapidKeys = { readonly public_key: string; readonly private_key: string };

const CURVE = "prime256v1";
const SALT_BYTES = 16;
const RECORD_BYTES = 4_096;
const TOKEN_TTL_S = 12 * 3_600;

export const makeVapidKeys = (): VapidKeys => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: CURVE });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
  return { public_key: point.toString("base64url"), private_key: privateKey.export({ format: "jwk" }).d ?? "" };
};

/** Returns whether a message can be encrypted for these keys. */
export const isPushKeys = ({ p256dh, auth }: PushKeys): boolean => {
  try {
    const ecdh = createECDH(CURVE);
    ecdh.generateKeys();
    ecdh.computeSecret(Buffer.from(p256dh, "base64url"));
    return Buffer.from(auth, "base64url").length === SALT_BYTES;
  } catch {
    return false;
  }
};

/** The random parts of a message; set only by tests. */
type PushRandomness = { readonly salt: Uint8Array; readonly private_key: Uint8Array };

/** Returns the body for the push service. Throws if the keys are invalid. */
export const encryptPush = (
  text: string,
  { p256dh, auth }: PushKeys,
  random?: PushRandomness,
): Uint8Array<ArrayBuffer> => {
  const ecdh = createECDH(CURVE);
  if (random) ecdh.setPrivateKey(random.private_key);
  else ecdh.generateKeys();
  const serverKey = ecdh.getPublicKey();
  const browserKey = Buffer.from(p256dh, "base64url");
  const shared = ecdh.computeSecret(browserKey);
  const salt = random?.salt ?? generateBytes(SALT_BYTES);
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), browserKey, serverKey]);
  const secret = deriveBytes(shared, Buffer.from(auth, "base64url"), info, 32);
  const key = deriveBytes(secret, salt, "Content-Encoding: aes128gcm\0", 16);
  const nonce = deriveBytes(secret, salt, "Content-Encoding: nonce\0", 12);
  const cipher = createCipheriv("aes-128-gcm", key, nonce);
  // 2 marks the last record.
  const sealed = Buffer.concat([
    cipher.update(text, "utf8"),
    cipher.update(Buffer.of(2)),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(RECORD_BYTES);
  return new Uint8Array(Buffer.concat([salt, size, Buffer.of(serverKey.length), serverKey, sealed]));
};

const deriveBytes = (secret: Uint8Array, salt: Uint8Array, info: string | Uint8Array, length: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, salt, info, length));

/** Returns the header that identifies the server to the push service. `now` is in milliseconds, `subject` an https or mailto URL. */
export const formatVapidHeader = (
  endpoint: URL,
  { public_key, private_key }: VapidKeys,
  subject: string,
  now: number,
): string => {
  const claims = { aud: endpoint.origin, exp: Math.floor(now / 1_000) + TOKEN_TTL_S, sub: subject };
  const head = [{ typ: "JWT", alg: "ES256" }, claims].map((one) =>
    Buffer.from(JSON.stringify(one)).toString("base64url"),
  );
  const point = Buffer.from(public_key, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString("base64url"));
  const jwk = { kty: "EC", crv: "P-256", x, y, d: private_key };
  const key = createPrivateKey({ key: jwk as never, format: "jwk" });
  const signature = sign("sha256", Buffer.from(head.join(".")), { key, dsaEncoding: "ieee-p1363" });
  return `vapid t=${head.join(".")}.${signature.toString("base64url")}, k=${public_key}`;
};
