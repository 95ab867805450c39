// Signatures of releases: created by minisign and by Slipway, and invalid ones.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parsePublicKey, printPublicKey, SignatureError, signDigest, verifyDigest } from "#base/minisign.ts";
import { generateSigningKey, openSigningKey, readSigningKey } from "#src/release/signing-key.ts";
import { needs, testNeeding } from "#test/support/needs.ts";

// Created with minisign 0.11 (`minisign -G -W`), only for this test.
const SECRET_KEY =
  "untrusted comment: minisign encrypted secret key\nRWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAXiAHFJLoyloM1UDaseNf58tA6E0edWjghu6Lv4gX73wGzE7k+Vbwx9hSydRCSh6pKLfz/t5ubpDQAsTnNqgYi21ogNDPYkReAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
const PUBLIC_KEY = "RWReIAcUkujKWthSydRCSh6pKLfz/t5ubpDQAsTnNqgYi21ogNDPYkRe";
const SIGNATURE = [
  "untrusted comment: signature from minisign secret key",
  "RUReIAcUkujKWpnSLUEVeU2N1ZUdrtyug7WTZ37YyauQrM3NWm4W3ImZJIlBVZ60bZV6soVfhGjgbJdRP/RewE8/fr8Bn17jLgM=",
  "trusted comment: slipway 0.2.0 f",
  "oq2L4oXZt2S4tejfDqgLBvNp9nlp2MX1HLLFFnn3UMnJkkQn4rQEfoBwnsQxxLEMJv2SWICSvMWm4CtCvpSWCA==",
  "",
].join("\n");

const digest = (text: string): Uint8Array => new Bun.CryptoHasher("blake2b512").update(text).digest();

test("[RL-1] accepts a minisign signature and returns its trusted comment", () => {
  expect(verifyDigest(digest("hi\n"), SIGNATURE, [parsePublicKey(PUBLIC_KEY)])).toBe("slipway 0.2.0 f");
  expect(verifyDigest(digest("hi\n"), SIGNATURE, [parsePublicKey(`untrusted comment: a key\n${PUBLIC_KEY}\n`)])).toBe(
    "slipway 0.2.0 f",
  );
});

test("[RL-1] refuses a changed file, a changed comment, another key and an invalid signature", () => {
  const keys = [parsePublicKey(PUBLIC_KEY)];
  const expectRefused = (text: string, file = "hi\n", trusted = keys) =>
    expect(() => verifyDigest(digest(file), text, trusted)).toThrow(SignatureError);
  expectRefused(SIGNATURE, "hi");
  expectRefused(SIGNATURE.replace("0.2.0", "0.3.0"));
  expectRefused(SIGNATURE, "hi\n", [parsePublicKey(printPublicKey(generateSigningKey()))]);
  expectRefused(SIGNATURE, "hi\n", []);
  expectRefused("");
  expectRefused("untrusted comment: x\nAAAA\ntrusted comment: y\nAAAA\n");
  expectRefused(SIGNATURE.replace("RUReIA", "RWReIA"));
  // This key has a trusted key's ID, but is another key.
  const otherKey = { ...generateSigningKey(), id: Buffer.from("5e20071492e8ca5a", "hex") };
  expectRefused(signDigest(digest("hi\n"), "slipway 0.2.0 f", otherKey));
  expect(() => parsePublicKey("RWabc")).toThrow(SignatureError);
});

test("[RL-1] signs with a minisign key, and asks for a protected key's password", () => {
  const key = readSigningKey(SECRET_KEY, undefined);
  expect(printPublicKey(key)).toBe(PUBLIC_KEY);
  expect(verifyDigest(digest("x"), signDigest(digest("x"), "slipway 1.0.0 y", key), [parsePublicKey(PUBLIC_KEY)])).toBe(
    "slipway 1.0.0 y",
  );
  const bytes = Buffer.from(SECRET_KEY.split("\n")[1] as string, "base64");
  bytes.write("Sc", 2, "latin1");
  // The minimum that libsodium accepts: 32768 operations in 16 MiB.
  bytes.writeBigUInt64LE(32_768n, 38);
  bytes.writeBigUInt64LE(16_777_216n, 46);
  const protectedKey = `untrusted comment: x\n${bytes.toString("base64")}\n`;
  expect(() => readSigningKey(protectedKey, undefined)).toThrow("SLIPWAY_RELEASE_KEY_PASSWORD");
  expect(() => readSigningKey(protectedKey, "wrong")).toThrow("password");
  expect(() => readSigningKey("RWQ=", undefined)).toThrow(SignatureError);
});

testNeeding([needs.minisign], "[RL-1] minisign accepts Slipway's signatures with a generated key", async () => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-signatures-"));
  try {
    const { key, isNew } = openSigningKey(join(folder, "keys", "release.key"), undefined);
    expect(isNew).toBe(true);
    expect(openSigningKey(join(folder, "keys", "release.key"), undefined)).toEqual({ key, isNew: false });
    writeFileSync(join(folder, "f"), "released");
    writeFileSync(join(folder, "f.minisig"), signDigest(digest("released"), "slipway 1.2.3 f", key));
    const runMinisign = (...args: string[]) => Bun.spawnSync([needs.minisign.file, ...args], { cwd: folder });
    const verified = runMinisign("-V", "-m", "f", "-p", "keys/release.key.pub");
    expect([verified.exitCode, verified.stdout.toString()]).toEqual([0, expect.stringContaining("slipway 1.2.3 f")]);
    expect(runMinisign("-S", "-s", "keys/release.key", "-m", "f", "-t", "slipway 1.2.4 f").exitCode).toBe(0);
    const signature = readFileSync(join(folder, "f.minisig"), "utf8");
    expect(verifyDigest(digest("released"), signature, [parsePublicKey(printPublicKey(key))])).toBe("slipway 1.2.4 f");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
