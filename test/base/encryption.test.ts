// Encrypted values, when they can be decrypted, and the key file.
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { Encryption, openEncryption, UnsealError } from "#base/encryption.ts";
import { tempDirectory } from "#test/support/server.ts";

const makeKey = (fill: number) => new Uint8Array(32).fill(fill);

describe("sealing", () => {
  const encryption = new Encryption(makeKey(1));

  test("[GK-5] sealed values open in the same context, and no two sealed values are alike", () => {
    for (const secret of ["", "a", "ü".repeat(10_000), "line\nline\n"]) {
      const sealed = encryption.seal(secret, "x:1");
      expect(sealed).toMatch(/^v1\.[0-9a-f]{8}\.[\w-]+$/);
      expect(sealed).not.toBe(encryption.seal(secret, "x:1"));
      expect(encryption.open(sealed, "x:1")).toBe(secret);
    }
  });

  test("[GK-5] values are not decrypted in another context, with another key, or with any altered bit", () => {
    const sealed = encryption.seal("secret", "x:1");
    expect(() => encryption.open(sealed, "x:2")).toThrow(UnsealError);
    expect(() => new Encryption(makeKey(2)).open(sealed, "x:1")).toThrow(/another key/);
    const [version, keyId, body = ""] = sealed.split(".");
    const bytes = Buffer.from(body, "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const altered = Buffer.from(bytes);
      altered[bit >> 3] = (altered[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(() => encryption.open([version, keyId, altered.toString("base64url")].join("."), "x:1")).toThrow(
        UnsealError,
      );
    }
    for (const text of ["", "v1", "v2.a.b", `v1.${keyId}.`, `v1.${keyId}.AAAA`, "plain text"]) {
      expect(() => encryption.open(text, "x:1")).toThrow(UnsealError);
    }
  });
});

describe("the key file", () => {
  test("[GK-5] is created once, for the server's user only, and read again", () => {
    using directory = tempDirectory();
    const sealed = openEncryption(`${directory.path}/data`).seal("secret", "x");
    const file = `${directory.path}/data/encryption.key`;
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.new`)).toBe(false);
    chmodSync(file, 0o644);
    expect(openEncryption(`${directory.path}/data`).open(sealed, "x")).toBe("secret");
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("[GK-5] a damaged key file stops the start and is not changed", () => {
    using directory = tempDirectory();
    const file = `${directory.path}/encryption.key`;
    writeFileSync(file, "abc");
    expect(() => openEncryption(directory.path)).toThrow(/encryption\.key is damaged/);
    expect(readFileSync(file, "utf8")).toBe("abc");
  });
});
