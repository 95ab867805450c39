// A fake push service of a browser vendor: a server that knows a browser's keys, verifies senders (VAPID, RFC 8292) and decrypts messages
// (aes128gcm, RFC 8188 and 8291) as the browser would.
import { createDecipheriv, createECDH, createPublicKey, type ECDH, hkdfSync, randomBytes, verify } from "node:crypto";
import { makeCertificate } from "#test/cli/certificate.ts";

const deriveKey = (secret: Uint8Array, salt: Uint8Array, info: string | Uint8Array, length: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, salt, info, length));

export type PushMessage = { readonly text: string; readonly audience: string; readonly key: string };

export class PushService implements Disposable {
  readonly #server: Bun.Server<undefined>;
  readonly #browser: ECDH = createECDH("prime256v1");
  readonly #auth = randomBytes(16);
  /** Messages that were decrypted. */
  readonly delivered: PushMessage[] = [];
  /** Reasons for rejected requests. */
  readonly refused: string[] = [];
  /** The certificate file that callers must trust; empty without https. */
  readonly certificate: string;

  private constructor(files?: { cert: string; key: string }) {
    this.certificate = files?.cert ?? "";
    this.#browser.generateKeys();
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      ...(files ? { tls: { cert: Bun.file(files.cert), key: Bun.file(files.key) } } : {}),
      fetch: async (request) => {
        try {
          const audience = this.#verifySender(request.headers.get("authorization") ?? "");
          if (request.headers.get("content-encoding") !== "aes128gcm") throw new Error("no aes128gcm");
          const text = this.#decrypt(Buffer.from(await request.arrayBuffer()));
          this.delivered.push({ text, ...audience });
          return new Response(null, { status: 201 });
        } catch (error) {
          this.refused.push(String(error));
          return new Response(null, { status: 400 });
        }
      },
    });
  }

  static async start(folder: string): Promise<PushService> {
    return new PushService(await makeCertificate(folder, "push"));
  }

  /** Starts a service without https, for subscriptions that are stored directly. */
  static startPlain(): PushService {
    return new PushService();
  }

  get origin(): string {
    return this.#server.url.origin;
  }

  /** The subscription that `pushManager.subscribe` returns in the browser. */
  get subscription(): { endpoint: string; auth: string; p256dh: string } {
    return {
      endpoint: `${this.origin}/browser`,
      auth: this.#auth.toString("base64url"),
      p256dh: this.#browser.getPublicKey("base64url"),
    };
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }

  #verifySender(header: string): { audience: string; key: string } {
    const [, token = "", key = ""] = /^vapid t=(\S+), k=(\S+)$/.exec(header) ?? [];
    const [head = "", claims = "", signature = ""] = token.split(".");
    const point = Buffer.from(key, "base64url");
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString("base64url"));
    const signer = createPublicKey({ key: { kty: "EC", crv: "P-256", x, y } as never, format: "jwk" });
    const bytes = Buffer.from(signature, "base64url");
    const isSigned = verify(
      "sha256",
      Buffer.from(`${head}.${claims}`),
      { key: signer, dsaEncoding: "ieee-p1363" },
      bytes,
    );
    const { aud, exp } = JSON.parse(Buffer.from(claims, "base64url").toString()) as { aud: string; exp: number };
    if (!isSigned || aud !== this.origin || exp * 1_000 < Date.now()) throw new Error("not signed for this service");
    return { audience: aud, key };
  }

  #decrypt(body: Buffer): string {
    const salt = body.subarray(0, 16);
    const length = body[20] ?? 0;
    const senderKey = body.subarray(21, 21 + length);
    const ciphertext = body.subarray(21 + length);
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.#browser.getPublicKey(), senderKey]);
    const secret = deriveKey(this.#browser.computeSecret(senderKey), this.#auth, info, 32);
    const key = deriveKey(secret, salt, "Content-Encoding: aes128gcm\0", 16);
    const nonce = deriveKey(secret, salt, "Content-Encoding: nonce\0", 12);
    const cipher = createDecipheriv("aes-128-gcm", key, nonce);
    cipher.setAuthTag(ciphertext.subarray(-16));
    const plaintext = Buffer.concat([cipher.update(ciphertext.subarray(0, -16)), cipher.final()]);
    if (plaintext.at(-1) !== 2) throw new Error("not the last record");
    return plaintext.subarray(0, -1).toString();
  }
}
