// Secrets are masked in all encodings in which programs print them.
import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { Mask } from "#base/secrets/mask.ts";
import { randomFrom } from "#test/support/random.ts";

const ODD = 'p@ss wörd/<&>+"\\%{x}?~=';

const makeMask = (...secrets: string[]): Mask => {
  const mask = new Mask();
  mask.add(...secrets);
  return mask;
};

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("[TF-11] a secret is masked in JSON, in HCL, in URLs and in base64, at any position in the encoded text", () => {
  const mask = makeMask(ODD);
  const goJson = JSON.stringify(ODD).replace(/[<>&]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
  const query = encodeURIComponent(ODD).replaceAll("%20", "+");
  for (const encoded of [
    ODD,
    JSON.stringify(ODD),
    goJson,
    JSON.stringify(JSON.stringify(ODD)),
    encodeURIComponent(ODD),
    query,
  ]) {
    expect(mask.hide(`before ${encoded} behind`)).toMatch(/^before [\\"]*\(hidden\)[\\"]* behind$/);
    expect(mask.hide(encoded.toLowerCase().replace(/%[0-9a-f]{2}/g, (code) => code))).toBeDefined();
  }
  expect(mask.hide(encodeURIComponent(ODD).replace(/%../g, (code) => code.toLowerCase()))).toBe("(hidden)");
  expect(mask.hide(ODD.replaceAll("%{", "%%{").replaceAll('"', '\\"').replaceAll("\\%", "\\\\%"))).toContain(
    "(hidden)",
  );
  for (const before of ["", "u", "us", "usr", "name:"]) {
    for (const after of ["", "\n", "!!", ":more"]) {
      for (const encoded of [base64(before + ODD + after), Buffer.from(before + ODD + after).toString("base64url")]) {
        const hidden = mask.hide(`token=${encoded}`);
        expect(hidden).toContain("(hidden)");
        // The characters at the edges, which share bits with their neighbors, reveal less than a byte of the secret.
        expect(hidden.length).toBeLessThanOrEqual("token=(hidden)".length + base64(`${before}${after}`).length + 6);
      }
    }
  }
});

test("[TF-11] a multi-line key is masked line by line, as one JSON string, and in wrapped base64", () => {
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const mask = makeMask(privateKey);
  for (const line of privateKey.trim().split("\n")) expect(mask.hide(`  ${line}\r`)).toBe("  (hidden)\r");
  expect(mask.hide(JSON.stringify(privateKey))).toMatch(/^"\(hidden\)(?:\\n)?"$/);
  for (const width of [76, 64]) {
    for (const line of base64(privateKey).match(new RegExp(`.{1,${width}}`, "g")) ?? []) {
      const visible = mask.hide(line).replaceAll("(hidden)", "");
      if (line.length > 8) expect(visible.length).toBeLessThan(5);
    }
  }
});

test("[TF-11] overlapping secrets are masked completely, and ordinary text is unchanged", () => {
  const mask = makeMask("abcdefgh", "efghijkl", "abc");
  expect(mask.hide("x abcdefghijkl y abc")).toBe("x (hidden) y abc");
  expect(mask.hide("abcdefgh abcdefgh")).toBe("(hidden) (hidden)");
  expect(mask.hide("")).toBe("");
  const random = randomFrom(7);
  const words = Array.from({ length: 2_000 }, () => random().toString(36).slice(2)).join(" ");
  expect(mask.hide(words)).toBe(words);
});
