// Secrets in tool results: every occurrence is hidden, no matter where the text is split, and nothing else is hidden.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sha256, uuid } from "#base/ids.ts";
import { TextFinder } from "#base/secrets/finder.ts";
import { HIDDEN, SecretMask } from "#src/tools/mask.ts";

const TOKEN = "3f2a8c1e-0b5d-4e6f-9a7b-1c2d3e4f5a6b";
const KEY = "AbCdEf1234-0123456789abcdefghijKL";
const ACCOUNT_TOKEN = "gho_16C7e42F292c6912E7710c838347Ae178B4a";
const MODEL_KEY = "sk-test-0123456789";
const mask = new SecretMask({
  texts: [ACCOUNT_TOKEN, MODEL_KEY, "short"],
  agent_tokens: new Set([sha256(TOKEN)]),
  keys: new Map([[KEY.slice(0, 10), sha256(KEY.slice(11))]]),
});
const SECRETS = [TOKEN, TOKEN.toUpperCase(), KEY, ACCOUNT_TOKEN, MODEL_KEY];
const makeMask = (...texts: readonly string[]): SecretMask =>
  new SecretMask({ texts, agent_tokens: new Set(), keys: new Map() });

const maskInPieces = (pieces: readonly string[], secretMask = mask): string => {
  const stream = secretMask.stream();
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

  test("[TO-21] redacts secrets encoded as base64, JSON or URLs, even when split into pieces", () => {
    const secret = 'pa$$ "word"/with+all=of&it%';
    const secretMask = makeMask(secret);
    const encodedTexts = ["", "a", "ab"].map((before) => Buffer.from(`${before}${secret}:more`).toString("base64"));
    const url = new URL("https://example.com");
    url.password = secret;
    url.searchParams.set("q", secret);
    for (const encoded of [...encodedTexts, JSON.stringify({ secret }), encodeURIComponent(secret), url.href]) {
      const masked = secretMask.text(encoded);
      expect([encoded, masked]).toEqual([encoded, expect.stringContaining(HIDDEN)]);
      const stream = secretMask.stream();
      expect([...encoded].map((character) => stream.push(character)).join("") + stream.end()).toBe(masked);
    }
    for (const encoded of encodedTexts) {
      // Characters at the boundaries, which also encode neighboring bytes, reveal only a few bits of the secret.
      expect(Buffer.from(secretMask.text(encoded).replace(HIDDEN, ""), "base64").toString("latin1")).not.toContain(
        "word",
      );
    }
    expect(secretMask.text(Buffer.from("something else entirely").toString("base64"))).toBe(
      "c29tZXRoaW5nIGVsc2UgZW50aXJlbHk=",
    );
  });

  test("[TO-21] leaves lookalikes of secrets unchanged", () => {
    const lookalikes = `${uuid()} AbCdEf1234-0123456789abcdefghijXX ${KEY.slice(0, 30)} short ${"-".repeat(50)}`;
    expect(mask.text(lookalikes)).toBe(lookalikes);
  });

  test("[TO-21] covers every text of a result, including names and lists", () => {
    const result = { output: `a ${TOKEN}`, [KEY]: [{ deep: ACCOUNT_TOKEN }, 7, null, true] };
    expect(mask.result(result)).toEqual({
      output: `a ${HIDDEN}`,
      [HIDDEN]: [{ deep: HIDDEN }, 7, null, true],
    } as never);
  });

  test("[TO-21] redacts a secret that is split anywhere, or arrives byte by byte", () => {
    for (const secret of SECRETS) {
      const text = `before ${secret} after ${secret}`;
      for (let position = 0; position <= text.length; position++) {
        expect(maskInPieces([text.slice(0, position), text.slice(position)])).toBe(mask.text(text));
      }
      expect(maskInPieces([...text])).toBe(mask.text(text));
    }
  });

  test("[TO-21] hides secrets and nothing else, however the text is split", () => {
    const part = fc.oneof(fc.constantFrom(...SECRETS, "sk-", "3f2a8c1e-", "AbCdEf1234-", " ", "\n"), fc.string());
    fc.assert(
      fc.property(fc.array(part), fc.infiniteStream(fc.integer({ min: 1, max: 40 })), (parts, sizes) => {
        const text = parts.join("");
        const pieces: string[] = [];
        for (let position = 0; position < text.length; ) {
          const size = sizes.next().value as number;
          pieces.push(text.slice(position, position + size));
          position += size;
        }
        const shown = maskInPieces(pieces);
        for (const secret of SECRETS) expect(shown).not.toContain(secret);
        if (!SECRETS.some((secret) => text.toLowerCase().includes(secret.toLowerCase()))) expect(shown).toBe(text);
      }),
    );
  });

  test("[TO-21] holds back only the possible beginning of a secret", () => {
    const stream = mask.stream();
    expect(stream.push("50 % done, !!!")).toBe("50 % done, !!!");
    expect(stream.push(` ${ACCOUNT_TOKEN.slice(0, 12)}`)).toBe(" ");
    expect(stream.push("?")).toBe(`${ACCOUNT_TOKEN.slice(0, 12)}?`);
  });

  test("[TO-21] is fast for a MiB of lookalikes of secrets in 128 KiB pieces", () => {
    const text = `${uuid()} abcdefghij-0123456789abcdefghijKL `.repeat(15_000);
    const startedAt = performance.now();
    const stream = mask.stream();
    let length = 0;
    for (let position = 0; position < text.length; position += 131_072)
      length += stream.push(text.slice(position, position + 131_072)).length;
    expect(length + stream.end().length).toBe(text.length);
    // Measured: about 40 ms.
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  test("[TO-21] redacts overlapping secrets, and a secret that begins with another one", () => {
    const overlapMask = makeMask("first-half-0001", "half-0001-second", "first-half-0001-and-more");
    expect(overlapMask.text("a first-half-0001-second b")).toBe(`a ${HIDDEN} b`);
    expect(maskInPieces([..."a first-half-0001-second b"], overlapMask)).toBe(`a ${HIDDEN} b`);
    expect(maskInPieces(["first-half-0001", "-and-more"], overlapMask)).toBe(HIDDEN);
    // The end of this UUID is the beginning of the token.
    const uuidAndToken = `11111111-2222-3333-4444-5555${TOKEN}`;
    expect(mask.text(uuidAndToken)).toBe(`11111111-2222-3333-4444-5555${HIDDEN}`);
  });

  test("[TO-21] takes time proportional to the text, even if many secrets begin with the same characters", () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `aaaaaaaa${`${index}`.padStart(6, "0")}`);
    const finder = new TextFinder([...lines, "a".repeat(16_000), `${"a".repeat(16_000)}b`]);
    const text = "a".repeat(65_536);
    expect(finder.findAll(text)).toHaveLength(65_536 - 16_000 + 1);
    expect(finder.findOpenStart(text)).toBe(65_536 - 16_000);
    expect(finder.findAll("aaaaaaaa0".repeat(7_000))).toEqual([]);
    expect(finder.findAll(lines.join(" "))).toHaveLength(20_000);
    expect(finder.steps).toBeLessThan(2_500_000);
  });

  test("[TO-21] finds every similar text, and a possible beginning at the end", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 8, maxLength: 14 });
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 60 });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), letters, (texts, text) => {
        const finder = new TextFinder(texts);
        const starts = [...text].map((_, position) => position);
        const found = finder.findAll(text);
        for (const start of starts) {
          for (const match of texts.filter((known) => text.startsWith(known, start))) {
            expect(found.some(({ from, to }) => from <= start && to === start + match.length)).toBe(true);
          }
        }
        for (const { from, to } of found) expect(texts).toContain(text.slice(from, to));
        const isOpen = (tail: string): boolean => texts.some((known) => known.startsWith(tail) && known !== tail);
        expect(finder.findOpenStart(text)).toBe(starts.find((start) => isOpen(text.slice(start))) ?? text.length);
      }),
    );
  });

  test("[TO-21] hides the start of a secret if the stream is abandoned before its end", () => {
    const stream = mask.stream();
    expect(stream.push(`key ${ACCOUNT_TOKEN.slice(0, 30)}`) + stream.leave()).toBe(`key ${HIDDEN}`);
    expect(stream.push("gho") + stream.leave()).toBe("gho");
    expect(mask.maskPartial(`key ${ACCOUNT_TOKEN.slice(0, 30)}`)).toBe("key ");
  });
});

const KEY_LINES = [
  "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW",
  "QyNTUxOQAAACBTk2m3Jq0v8yXlR7c1w5ZbN4hU6dPfGtEoSaKiMjLxVwAAAJgTqRzUE6kc",
  "1AAAAAtzc2gtZWQyNTUxOQ==",
];
const SSH_KEY = ["-----BEGIN OPENSSH PRIVATE KEY-----", ...KEY_LINES, "-----END OPENSSH PRIVATE KEY-----", ""].join(
  "\n",
);

/** The ways in which programs print a text of several lines. */
const REPRESENTATIONS: [name: string, show: (text: string) => string][] = [
  ["as it is", (text) => text],
  ["with line numbers", (text) => text.replace(/^/gm, "     7\t")],
  ["quoted", (text) => text.replace(/^/gm, "> ")],
  ["as a diff", (text) => text.replace(/^/gm, "+")],
  ["with CRLF", (text) => text.replaceAll("\n", "\r\n")],
  ["without its first lines", (text) => text.split("\n").slice(2).join("\n")],
  ["without its last lines", (text) => text.split("\n").slice(0, 2).join("\n")],
  ["in JSON", (text) => JSON.stringify({ text })],
  ["in JSON within JSON", (text) => JSON.stringify(JSON.stringify({ text }))],
  ["in one line", (text) => text.replaceAll("\n", " ")],
  ["as a patch with CRLF", (text) => text.replace(/^/gm, "-").replaceAll("\n", "\r\n")],
];

describe("a multi-line secret", () => {
  const keyMask = makeMask(SSH_KEY);

  test.each(REPRESENTATIONS)("[TO-21] is redacted %s, even when split into pieces", (_, show) => {
    for (const secret of [SSH_KEY, SSH_KEY.replaceAll("\n", "\r\n"), SSH_KEY.replaceAll("\n", "\\n")]) {
      const secretMask = makeMask(secret);
      const text = `before\n${show(SSH_KEY)}\nafter`;
      for (const shown of [
        secretMask.text(text),
        maskInPieces([...text], secretMask),
        maskInPieces(text.split("\n"), secretMask),
      ]) {
        for (const line of KEY_LINES) expect(shown).not.toContain(line.slice(0, 20));
        expect(shown).toContain(HIDDEN);
      }
      expect(maskInPieces([...text], secretMask)).toBe(secretMask.text(text));
    }
  });

  test("[TO-21] keeps its number of lines, so that line numbers stay correct", () => {
    const text = `a\n${SSH_KEY}b\n`;
    expect(keyMask.lines(text)).toEqual(["a", HIDDEN, HIDDEN, HIDDEN, HIDDEN, HIDDEN, "b", ""]);
  });

  test("[TO-21] does not redact ordinary lines that it contains", () => {
    const kubeconfig = `apiVersion: v1
kind: Config
current-context: production
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJk
    server: https://cluster.example.com:6443
users:
- name: production
  user:
    token: kEpSvCCRnQo4wKz7xm2T
    password: hunter2
`;
    const env = `# Database
NODE_ENV=production
export DATABASE_URL="postgres://app:p4ssw0rd99@db.internal:5432/app"
PASSWORD=correct-horse
REGION=us-east-1
SMTP_PORT=587
`;
    const account = {
      type: "service_account",
      private_key: SSH_KEY,
      token_uri: "https://oauth2.googleapis.com/token",
    };
    const secretMask = makeMask(
      SSH_KEY,
      kubeconfig,
      env,
      JSON.stringify(account, null, 2),
      "{\n}\n[\n]\nimport os\nproduction",
    );
    const ordinary = `-----BEGIN OPENSSH PRIVATE KEY-----
-----END OPENSSH PRIVATE KEY-----
{ "type": "service_account", "private_key": "", "token_uri": "https://oauth2.googleapis.com/token" }
apiVersion: v1
kind: Config
current-context: production
clusters: []
- cluster: { server: https://cluster.example.com:6443 }
ENV NODE_ENV=production REGION=us-east-1 SMTP_PORT=587
password: PASSWORD
import os
`;
    expect(secretMask.text(ordinary)).toBe(ordinary);
    const secrets = [
      ...["LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJk", "kEpSvCCRnQo4wKz7xm2T", "password: hunter2"],
      ...["postgres://app:p4ssw0rd99@db.internal:5432/app", "p4ssw0rd99", "correct-horse", ...KEY_LINES],
    ];
    for (const secret of secrets) expect(secretMask.text(`: ${secret} :`)).toBe(`: ${HIDDEN} :`);
  });

  test("[TO-21] does not redact ordinary words, comments, or lines of programs and settings", () => {
    const env = `# Connection to the database
AUTH_METHOD=password
X_AUTH=required
SESSION_DRIVER=database
KEY_FILE=/etc/ssl/private/server.pem
DB_PASSWORD=postgres
PASSWORD=\${DB_PASSWORD}
MAIL_PASSWORD=correct-horse
# OLD_PASSWORD=former-horse
`;
    const program = `#!/bin/bash
set -euo pipefail
if __name__ == '__main__':
from pathlib import Path
password = getpass("Password: ")
author=Ada Lovelace
`;
    const ssh = `StrictHostKeyChecking yes
KexAlgorithms curve25519-sha256
Ciphers chacha20-poly1305@openssh.com
credential_source = Ec2InstanceMetadata
`;
    const netrc = "machine github.com\nlogin ada\npassword sunny-weather\n";
    const codes = "# Recovery\n4f2a-9c1e-77b0\nk3Jf-9sLq-2mNp\nfoo-bar-baz\n";
    const extra = JSON.stringify({ token_type: "installation", scope: "repository" });
    const secretMask = makeMask(env, program, ssh, netrc, codes, extra, "# For the archive\nhorse battery staple\n");
    const ordinary = `<input type="password" required> // Connection to the database, see database.ts and postgres
/etc/ssl/private/server.pem \${DB_PASSWORD} foo-bar-baz installation repository For the archive
machine github.com
${`${program}${ssh}`.split("\n").reverse().join("\n")}`;
    expect(secretMask.text(ordinary)).toBe(ordinary);
    const secrets = ["DB_PASSWORD=postgres", "correct-horse", "former-horse", "sunny-weather", "4f2a-9c1e-77b0"];
    for (const secret of [...secrets, "k3Jf-9sLq-2mNp", "horse battery staple"])
      expect(secretMask.text(`: ${secret} :`)).toBe(`: ${HIDDEN} :`);
  });

  test("[TO-21] is cheap to evaluate for any text", () => {
    const rows = Array.from({ length: 250 }, (_, index) => `${index}`.padStart(4, "0").repeat(16)).join("\n");
    const hardTexts = ["#", "a", "\\", "://:", "<a", '"', "export ", "-----BEGIN ", "a\n", " ", "aB", "- "].map(
      (part) => `${part.repeat(16_000 / part.length)}\nx`.slice(0, 16_384),
    );
    const startedAt = performance.now();
    const secretMask = makeMask(
      ...hardTexts,
      ...Array.from({ length: 40 }, (_, index) => rows.replaceAll("\n", `-${index}\n`)),
    );
    const text = `${rows}\n`.repeat(16);
    expect(secretMask.text(text).length).toBeGreaterThan(0);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
