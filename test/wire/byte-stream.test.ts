import { describe, expect, test } from "bun:test";
import { ByteStream } from "#src/wire/byte-stream.ts";
import { ChunkQueue } from "#src/wire/chunk-queue.ts";
import { makePattern, nextTurn, readAll, streamPair } from "./support.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("a byte stream over messages", () => {
  test("[WI-1] delivers the bytes in order and ends when the socket closes", async () => {
    const { a, b } = streamPair();
    await a.stream.write(bytes("hel"), bytes("lo "));
    await a.stream.write(bytes("world"));
    const read = readAll(b.stream);
    await nextTurn();
    a.stream.close();
    expect(new TextDecoder().decode(await read)).toBe("hello world");
    expect(await b.stream.closed).toBeUndefined();
  });

  test("[WI-1] refuses text messages", async () => {
    const { a, b } = streamPair();
    b.stream.push("{}");
    expect(b.closed?.code).toBe(1003);
    await expect(b.stream.read()).rejects.toMatchObject({ failure: "protocol" });
    expect(a.closed).toBeUndefined();
  });

  test("[WI-2] disconnects a peer that outruns the reader", async () => {
    let code: number | undefined;
    const close = (closeCode?: number): void => {
      code = closeCode;
    };
    const stream = new ByteStream({ send: () => 1, close }, { max_unread: 100 });
    stream.push(new Uint8Array(60));
    stream.push(new Uint8Array(60));
    expect(code).toBe(1008);
    expect(await stream.closed).toMatchObject({ failure: "too_slow" });
    await expect(stream.read()).rejects.toMatchObject({ failure: "too_slow" });
  });

  test("[WI-3] a writer waits while the socket is full; control frames overtake it when the socket drains", async () => {
    const { a } = streamPair();
    a.block();
    await a.stream.write(bytes("1"));
    const order: string[] = [];
    const second = a.stream.write(bytes("2")).then(() => order.push("2"));
    const third = a.stream.write(bytes("3")).then(() => order.push("3"));
    a.stream.send(bytes("!"));
    await nextTurn();
    expect(order).toEqual([]);
    expect(a.sent).toHaveLength(1);
    a.unblock();
    await Promise.all([second, third]);
    expect(a.sent.map((message) => new TextDecoder().decode(message))).toEqual(["1", "!", "2", "3"]);
  });

  test("[WI-3] disconnects a peer that leaves too many control frames unread", async () => {
    const { a } = streamPair();
    a.block();
    for (let i = 0; i < 100_000 && !a.closed; i++) a.stream.send(new Uint8Array(12));
    expect(a.closed?.code).toBe(1008);
    expect(await a.stream.closed).toMatchObject({ failure: "too_slow" });
  });

  test("[WI-3] a dropped message breaks the stream and every waiting writer", async () => {
    let sendResult = -1;
    const stream = new ByteStream({ send: () => sendResult, close() {} });
    await stream.write(bytes("1"));
    const second = stream.write(bytes("2"));
    const third = stream.write(bytes("3"));
    sendResult = 0;
    stream.drain();
    await expect(second).rejects.toMatchObject({ failure: "closed" });
    await expect(third).rejects.toMatchObject({ failure: "closed" });
    await expect(stream.write(bytes("4"))).rejects.toMatchObject({ failure: "closed" });
  });
});

describe("the queue of unread bytes", () => {
  test("[WI-6] joins one-byte pieces of large messages and does not retain the messages", () => {
    const queue = new ChunkQueue();
    const expected = makePattern(20_000);
    for (let i = 0; i < expected.byteLength; i++) {
      const message = new Uint8Array(4096);
      message[7] = expected[i] ?? 0;
      queue.push(message.subarray(7, 8));
    }
    const chunks: Uint8Array[] = [];
    for (let chunk = queue.shift(); chunk; chunk = queue.shift()) chunks.push(chunk);
    expect(Buffer.concat(chunks)).toEqual(Buffer.from(expected));
    expect(chunks.length).toBeLessThan(5);
    const buffers = new Set(chunks.map((chunk) => chunk.buffer));
    expect([...buffers].reduce((sum, buffer) => sum + buffer.byteLength, 0)).toBeLessThan(3 * 20_000);
  });

  test("[WI-6] a delivered chunk never changes", () => {
    const queue = new ChunkQueue();
    queue.push(Uint8Array.of(1));
    queue.push(Uint8Array.of(2));
    queue.shift();
    const second = queue.shift();
    queue.push(Uint8Array.of(3));
    queue.push(Uint8Array.of(4));
    expect(second).toEqual(Uint8Array.of(2));
    expect(queue.unread).toBe(2);
  });

  test("[WI-6] keeps a large piece without copying it", () => {
    const queue = new ChunkQueue();
    const message = new Uint8Array(10_000);
    queue.push(message.subarray(12));
    expect(queue.shift()?.buffer).toBe(message.buffer);
  });
});
