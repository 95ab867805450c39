// Forwarding of a daemon's messages at the pace of the client, with a client and a daemon that the test controls.
import { expect, test } from "bun:test";
import { Relay } from "#src/api/http/relay.ts";
import type { Socket } from "#src/api/http/socket.ts";
import type { WebSocketFrames, WebSocketMessage } from "#src/wire/websocket-frames.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const createRelay = (messages: (WebSocketMessage | undefined)[]) => {
  const log: string[] = [];
  const finished = Promise.withResolvers<void>();
  const reads = { count: 0 };
  const client = { isFull: false, waiting: 0 };
  const frames = {
    next: async () => {
      reads.count += 1;
      if (messages.length === 0) await new Promise(() => {});
      return messages.shift();
    },
    send: async (message: WebSocketMessage) => void log.push(`daemon: ${message.kind}`),
    reset: () => log.push("daemon: reset"),
    discard: () => log.push("memory free"),
  };
  const socket = {
    transmit: (data: string) => {
      log.push(data);
      client.waiting = client.isFull ? 1 : 0;
      return client.isFull ? -1 : 1;
    },
    get waiting() {
      return client.waiting;
    },
    close: (code: number, reason: string) => {
      log.push(`${code} ${reason}`);
      finished.resolve();
    },
    closeSlow: () => {
      log.push("too slow");
      finished.resolve();
    },
  };
  const clock = new ManualClock();
  const relay = new Relay(clock, frames as unknown as WebSocketFrames);
  const run = () =>
    relay.run(socket as unknown as Socket, (message) => (message.kind === "text" ? message.text : undefined));
  return { log, finished: finished.promise, reads, client, clock, relay, run };
};

const toMessage = (text: string): WebSocketMessage => ({ kind: "text", text });
/** Lets all pending promise callbacks run. */
const flushMicrotasks = async (): Promise<void> => {
  for (let tick = 0; tick < 20; tick += 1) await Promise.resolve();
};

test("[GS-6] reads the daemon no faster than the client reads, and disconnects a client that reads nothing for 20 s", async () => {
  const fast = createRelay([
    toMessage("one"),
    { kind: "ping", bytes: new Uint8Array() },
    toMessage("two"),
    toMessage("three"),
  ]);
  fast.run();
  await flushMicrotasks();
  expect(fast.log).toEqual(["one", "daemon: pong", "two", "three"]);
  const slow = createRelay([toMessage("one"), toMessage("two"), toMessage("three")]);
  slow.client.isFull = true;
  slow.run();
  await flushMicrotasks();
  expect([slow.log, slow.reads.count]).toEqual([["one"], 1]);
  slow.client.waiting = 0;
  slow.relay.drain();
  await flushMicrotasks();
  expect([slow.log, slow.reads.count]).toEqual([["one", "two"], 2]);
  slow.clock.advance(19_999);
  expect(slow.log).toEqual(["one", "two"]);
  slow.clock.advance(1);
  await slow.finished;
  slow.relay.close();
  await flushMicrotasks();
  expect(slow.log.slice(0, 5)).toEqual(["one", "two", "too slow", "memory free", "daemon: reset"]);
  expect(slow.reads.count).toBe(2);
});

test("[GS-6] a daemon that ends or breaks the stream ends it for the client, with a reason", async () => {
  const ended = createRelay([{ kind: "close", code: 1011, reason: "the desktop has ended" }]);
  ended.run();
  await ended.finished;
  expect(ended.log).toEqual(["memory free", "1011 the desktop has ended"]);
  const broken = createRelay([undefined]);
  broken.run();
  await broken.finished;
  expect(broken.log).toEqual(["memory free", "1011 the agent has ended the stream"]);
});
