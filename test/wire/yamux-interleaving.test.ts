import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { makePattern, readAll, sessionPair, splitBy } from "./support.ts";

/** The script of a stream: which side opens it, the sizes of its writes and of the answer, and the number of pauses before each write. */
const script = fc.record({
  byClient: fc.boolean(),
  writes: fc.array(fc.oneof(fc.nat(50), fc.nat(5_000), fc.nat(400_000)), { maxLength: 6 }),
  answer: fc.nat(100_000),
  pauses: fc.nat(5),
});

describe("many streams on one connection", () => {
  test("[WI-6] delivers each stream's bytes intact, however the messages are interleaved and split", async () => {
    const seed = Number(process.env.WIRE_SEED ?? (Math.random() * 2 ** 31) | 0);
    process.stderr.write(`WIRE_SEED=${seed}\n`);
    await fc.assert(
      fc.asyncProperty(
        fc.array(script, { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 5 }),
        async (scripts, sizes) => {
          // Sending megabytes in one-byte chunks would only take time; the frame test covers such chunks.
          const pair = sessionPair({}, splitBy(sizes.map((size) => Math.max(size, 64))));
          const accepted = { client: 0, server: 0 };
          for (const { byClient } of scripts) accepted[byClient ? "server" : "client"] += 1;
          // The opener's first four bytes identify its script, so that the other side knows what to expect.
          const answerStream = async (session: typeof pair.client): Promise<void> => {
            const stream = await session.accept();
            if (!stream) throw new Error("The session ended.");
            const read = Buffer.from(await readAll(stream));
            const index = read.readUInt32BE(0);
            const { writes, answer } = scripts[index]!;
            const expected = Buffer.concat(writes.map((size, i) => makePattern(size, index * 10 + i)));
            expect(read.subarray(4).equals(expected)).toBe(true);
            await stream.write(makePattern(answer, index));
            await stream.end();
          };
          const openStream = async (index: number): Promise<void> => {
            const { byClient, writes, answer, pauses } = scripts[index]!;
            const stream = await (byClient ? pair.client : pair.server).open();
            const header = Buffer.alloc(4);
            header.writeUInt32BE(index);
            await stream.write(header);
            for (const [i, size] of writes.entries()) {
              for (let pause = 0; pause < pauses; pause++) await Promise.resolve();
              await stream.write(makePattern(size, index * 10 + i));
            }
            await stream.end();
            expect(Buffer.from(await readAll(stream)).equals(makePattern(answer, index))).toBe(true);
          };
          await Promise.all([
            ...Array.from({ length: accepted.client }, () => answerStream(pair.client)),
            ...Array.from({ length: accepted.server }, () => answerStream(pair.server)),
            ...scripts.map((_, index) => openStream(index)),
          ]);
          expect(pair.client.streams + pair.server.streams).toBe(0);
          pair.client.close();
          expect(await pair.server.closed).toBeUndefined();
        },
      ),
      { numRuns: 25, seed },
    );
  });
});
