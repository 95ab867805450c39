// Secrets in tool results: every occurrence is hidden, however the text is split, and nothing else is.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sha256, uuid } from "#base/ids.ts";
import { HIDDEN, SecretMask } from "#src/tools/mask.ts";

const TOKEN = "3f2a8c1e-0b5d-4e6f-9a7b-1c2d3e4f5a6b";
const KEY = "AbCdEf1234-0123456789abcdefghijKL";
const LINKED = "gho_16C7e42F292c6912E7710c838347Ae178B4a";
const MODEL = "sk-test-0123456789";
const mask = new SecretMask({
  texts: [LINKED, MODEL, "short"],
  agent_tokens: new Set([sha256(TOKEN)]),
  keys: new Map([[KEY.slice(0, 10), sha256(KEY.slice(11))]]),
});
const SECRETS = [TOKEN, TOKEN.toUpperCase(), KEY, LINKED, MODEL];

const maskInPieces = (pieces: readonly string[]): string => {
  const stream = mask.stream();
  return pieces.map((piece) => stream.push(piece)).join("") + stream.end();
};

describe("a mask", () => {
  test.each(SECRETS)("[TO-21] hides %s between letters, in quotes and twice in a line", (secret) => {
    for (const [before, after] of [
      ["", ""],
      ["TOKEN=", "\n"],
      ["abc", "def"],
      ['{"x":"', '"}'],
      ["-", "-"],
    ]) {
      expect(mask.text(`${before}${secret}${after} ${secret}`)).toBe(`${before}${HIDDEN}${after} ${HIDDEN}`);
    }
  });

  test("[TO-21] redacts encoded text: base64 in any context, JSON, URLs; also in pieces", () => {
    const secret = 'pa$$ "word"/with+all=of&it%';
    const own = new SecretMask({ texts: [secret], agent_tokens: new Set(), keys: new Map() });
    const around = ["", "a", "ab"].map((before) => Buffer.from(`${before}${secret}:more`).toString("base64"));
    const url = new URL("https://example.com");
    url.password = secret;
    url.searchParams.set("q", secret);
    for (const written of [...around, JSON.stringify({ secret }), encodeURIComponent(secret), url.href]) {
      const shown = own.text(written);
      expect([written, shown]).toEqual([written, expect.stringContaining(HIDDEN)]);
      const stream = own.stream();
      expect([...written].map((one) => stream.push(one)).join("") + stream.end()).toBe(shown);
    }
    for (const written of around) {
      // The bits shared with neighbors at the boundaries reveal only a few bits of the secret.
      expect(Buffer.from(own.text(written).replace(HIDDEN, ""), "base64").toString("latin1")).not.toContain("word");
    }
    expect(own.text(Buffer.from("something else entirely").toString("base64"))).toBe(
      "c29tZXRoaW5nIGVsc2UgZW50aXJlbHk=",
    );
  });

  test("[TO-21] leaves lookalikes of secrets unchanged", () => {
    const other = `${uuid()} AbCdEf1234-0123456789abcdefghijXX ${KEY.slice(0, 30)} short ${"-".repeat(50)}`;
    expect(mask.text(other)).toBe(other);
  });

  test("[TO-21] covers every text of a result, including names and lists", () => {
    const result = { output: `a ${TOKEN}`, [KEY]: [{ deep: LINKED }, 7, null, true] };
    expect(mask.result(result)).toEqual({
      output: `a ${HIDDEN}`,
      [HIDDEN]: [{ deep: HIDDEN }, 7, null, true],
    } as never);
  });

  test("[TO-21] redacts a secret that is split anywhere, or arrives byte by byte", () => {
    for (const secret of SECRETS) {
      const text = `before ${secret} after ${secret}`;
      for (let at = 0; at <= text.length; at++) {
        expect(maskInPieces([text.slice(0, at), text.slice(at)])).toBe(mask.text(text));
      }
      expect(maskInPieces([...text])).toBe(mask.text(text));
    }
  });

  test("[TO-21] has the same output for any text in any pieces, and completes it at the end", () => {
    const part = fc.oneof(fc.constantFrom(...SECRETS, "sk-", "3f2a8c1e-", "AbCdEf1234-", " ", "\n"), fc.string());
    fc.assert(
      fc.property(fc.array(part), fc.infiniteStream(fc.integer({ min: 1, max: 40 })), (parts, sizes) => {
        const text = parts.join("");
        const pieces: string[] = [];
        for (let at = 0; at < text.length; ) {
          const size = sizes.next().value as number;
          pieces.push(text.slice(at, at + size));
          at += size;
        }
        const shown = maskInPieces(pieces);
        for (const secret of SECRETS) expect(shown).not.toContain(secret);
        if (!SECRETS.some((secret) => text.toLowerCase().includes(secret.toLowerCase()))) expect(shown).toBe(text);
      }),
    );
  });

  test("[TO-21] holds back no more than the beginning of a secret", () => {
    const stream = mask.stream();
    expect(stream.push("50 % done, !!!")).toBe("50 % done, !!!");
    expect(stream.push(` ${LINKED.slice(0, 12)}`)).toBe(" ");
    expect(stream.push("?")).toBe(`${LINKED.slice(0, 12)}?`);
  });

  test("[TO-21] is fast for a MiB of lookalikes of secrets in 128 KiB pieces", () => {
    const text = `${uuid()} abcdefghij-0123456789abcdefghijKL `.repeat(15_000);
    const began = performance.now();
    const stream = mask.stream();
    let length = 0;
    for (let at = 0; at < text.length; at += 131_072) length += stream.push(text.slice(at, at + 131_072)).length;
    expect(length + stream.end().length).toBe(text.length);
    // Measured: about 40 ms.
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});
