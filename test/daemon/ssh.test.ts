// Parts of the workspace's SSH server: packets, handles and counts. test/cli/network-openssh.test.ts tests it with real clients.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import ssh2 from "ssh2";
import { makeSshKeyPair } from "#base/ssh-key.ts";
import { loadMessageOfTheDay } from "#src/daemon/ssh/motd.ts";
import { buildCommand } from "#src/daemon/ssh/session.ts";
import { SessionCounts, toSessionKind } from "#src/daemon/ssh/session-counts.ts";
import {
  ANSWER,
  encodePacket,
  Fields,
  MAX_PACKET_BYTES,
  PacketReader,
  REQUEST,
  STATUS,
} from "#src/daemon/ssh/sftp/codec.ts";
import { Handles } from "#src/daemon/ssh/sftp/handles.ts";
import { handleRequest } from "#src/daemon/ssh/sftp/operations.ts";

test("[WN-6] counts open sessions by purpose, each once", () => {
  const counts = new SessionCounts();
  const endFunctions = ["vscode", "VSCode", "jetbrains", "ssh", "something"].map((name) =>
    counts.add(toSessionKind(name)),
  );
  expect(counts.open).toEqual({ vscode: 2, jetbrains: 1, ssh: 2 });
  for (const endSession of endFunctions) {
    endSession();
    endSession();
  }
  expect(counts.open).toEqual({ vscode: 0, jetbrains: 0, ssh: 0 });
});

test("[WN-1] every created key pair can be parsed, even if its point starts with a zero", () => {
  const startsWithZero = new Set<boolean>();
  // One in 256 starts with a zero byte.
  for (let i = 0; i < 500 || startsWithZero.size < 2; i++) {
    const { private_key, public_key } = makeSshKeyPair();
    const key = ssh2.utils.parseKey(private_key);
    if (key instanceof Error) throw key;
    const blob = Buffer.from(public_key.split(" ")[1] ?? "", "base64");
    expect((Array.isArray(key) ? key[0] : key)?.getPublicSSH().equals(blob)).toBe(true);
    startsWithZero.add(blob.at(-32) === 0);
  }
});

test("[WN-1] the first line of a script names its interpreter", () => {
  expect(buildCommand("echo hello", "/bin/zsh")).toEqual(["/bin/zsh", "-c", "echo hello"]);
  expect(buildCommand("#!/usr/bin/env python3\nprint(1)\n", "/bin/sh")).toEqual([
    "/usr/bin/env",
    "python3",
    "-c",
    "print(1)\n",
  ]);
  expect(buildCommand("#!", "/bin/sh")).toEqual(["/bin/sh", "-c", "#!"]);
});

test("[WN-10] a terminal shows the message of the day unless `.hushlogin` exists or the file is missing", async () => {
  const home = mkdtempSync(join(tmpdir(), "motd-"));
  const path = join(home, "motd");
  expect(await loadMessageOfTheDay("", home)).toBe("");
  expect(await loadMessageOfTheDay(path, home)).toBe("");
  expect(await loadMessageOfTheDay(home, home)).toBe("");
  writeFileSync(path, "Welcome.\nBe kind.\n\n");
  expect(await loadMessageOfTheDay(path, home)).toBe("Welcome.\r\nBe kind.\r\n");
  writeFileSync(path, "x".repeat(1_000_000));
  expect((await loadMessageOfTheDay(path, home)).length).toBeLessThan(70_000);
  writeFileSync(join(home, ".hushlogin"), "");
  expect(await loadMessageOfTheDay(path, home)).toBe("");
  rmSync(home, { recursive: true });
});

test("[WN-5] decodes packets however the stream is split; a packet that is empty or too large ends the session", () => {
  const packets = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 8 });
  fc.assert(
    fc.property(packets, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (bodies, cuts) => {
      const stream = Buffer.concat(bodies.map((body) => encodePacket(body[0] as number, { bytes: body.subarray(1) })));
      const reader = new PacketReader();
      const decoded: Buffer[] = [];
      for (let position = 0, i = 0; position < stream.byteLength; i += 1) {
        const size = cuts[i % cuts.length] as number;
        for (const packet of reader.push(stream.subarray(position, position + size))) decoded.push(Buffer.from(packet));
        position += size;
      }
      return decoded.length === bodies.length && decoded.every((packet, i) => packet[0] === bodies[i]?.[0]);
    }),
  );
  for (const length of [0, MAX_PACKET_BYTES + 1, 0xffffffff]) {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(length);
    expect(() => [...new PacketReader().push(head)]).toThrow("packet");
  }
});

test("[WN-5] refuses invalid requests or ends the session, without reaching the disk or leaking handles", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sftp-"));
  writeFileSync(join(directory, "kept"), "kept");
  const session = { handles: new Handles(), root: { directory, home: directory } };
  const types = Object.values(REQUEST).filter((type) => type !== REQUEST.init && type !== REQUEST.extended);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...types, 77), fc.uint8Array({ maxLength: 120 }), async (type, bytes) => {
      // Paths of random bytes almost never exist.
      const answer = await handleRequest(type, new Fields(Buffer.from(bytes)), session).catch(
        (error: Error) => error.name,
      );
      if (typeof answer === "string") return answer === "SftpError";
      return answer.readUInt32BE(0) === answer.byteLength - 4;
    }),
    { numRuns: 500 },
  );
  await session.handles.closeAll();
  rmSync(directory, { recursive: true });
});

test("[WN-5] limits the number of handles and refuses unknown ones", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sftp-"));
  const session = { handles: new Handles(), root: { directory, home: directory } };
  const exchangePacket = async (type: number, ...fields: Parameters<typeof encodePacket>[1][]) => {
    const packet = encodePacket(type, { word: 9 }, ...fields);
    const answer = new Fields(await handleRequest(type, new Fields(packet.subarray(5)), session));
    answer.uint32();
    return { type: answer.byte(), id: answer.uint32(), first: answer.uint32() };
  };
  let refused = 0;
  for (let i = 0; i < 1_100; i += 1) {
    const { type } = await exchangePacket(REQUEST.opendir, { text: "." });
    if (type === ANSWER.status) refused += 1;
  }
  expect(refused).toBe(1_100 - 1_024);
  expect(await exchangePacket(REQUEST.close, { text: "1025" })).toEqual({
    type: ANSWER.status,
    id: 9,
    first: STATUS.failure,
  });
  expect(await exchangePacket(REQUEST.close, { text: "1" })).toEqual({ type: ANSWER.status, id: 9, first: STATUS.ok });
  expect(await exchangePacket(REQUEST.stat, { text: "missing" })).toEqual({
    type: ANSWER.status,
    id: 9,
    first: STATUS.noSuchFile,
  });
  await session.handles.closeAll();
  rmSync(directory, { recursive: true });
});
