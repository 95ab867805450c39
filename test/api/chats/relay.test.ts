// Forwarding a daemon's messages to a client at the client's pace, with a client and a daemon controlled by the test.
import { expect, test } from "bun:test";
import { Relay } from "#src/api/http/relay.ts";
import type { Socket } from "#src/api/http/socket.ts";
import type { WebSocketFrames, WebSocketMessage } from "#src/wire/websocket-frames.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const createWorld = (messages: (WebSocketMessage | undefined)[]) => {
  const texts: string[] = [];
  const finished = Promise.withResolvers<void>();
  const requested = { count: 0 };
  const client = { full: false, waiting: 0 };
  const frames = {
    next: async () => {
      requested.count += 1;
      if (messages.length === 0) await new Promise(() => {});
      return messages.shift();
    },
    send: async (message: WebSocketMessage) => void texts.push(`daemon: ${message.kind}`),
    reset: () => texts.push("daemon: reset"),
    discard: () => texts.push("memory free"),
  };
  const socket = {
    transmit: (data: string) => {
      texts.push(data);
      client.waiting = client.full ? 1 : 0;
      return client.full ? -1 : 1;
    },
    get waiting() {
      return client.waiting;
    },
    close: (code: number, reason: string) => {
      texts.push(`${code} ${reason}`);
      finished.resolve();
    },
    closeSlow: () => {
      texts.push("too slow");
      finished.resolve();
    },
  };
  const clock = new ManualClock();
  const relay = new Relay(clock, frames as unknown as WebSocketFrames);
  const runRelay = () => relay.run(socket as unknown as Socket, (one) => (one.kind === "text" ? one.text : undefined));
  return { said: texts, over: finished.promise, asked: requested, client, clock, relay, run: runRelay };
};

const text = (words: string): WebSocketMessage => ({ kind: "text", text: words });
const turn = async (): Promise<void> => {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
};

test("[GS-6] the daemon is read no faster than the client reads; a client that reads nothing for 20 s is closed", async () => {
  const at = createWorld([text("one"), { kind: "ping", bytes: new Uint8Array() }, text("two"), text("three")]);
  at.run();
  await turn();
  expect(at.said).toEqual(["one", "daemon: pong", "two", "three"]);
  const slow = createWorld([text("one"), text("two"), text("three")]);
  slow.client.full = true;
  slow.run();
  await turn();
  expect([slow.said, slow.asked.count]).toEqual([["one"], 1]);
  slow.client.waiting = 0;
  slow.relay.drain();
  await turn();
  expect([slow.said, slow.asked.count]).toEqual([["one", "two"], 2]);
  slow.clock.advance(19_999);
  expect(slow.said).toEqual(["one", "two"]);
  slow.clock.advance(1);
  await slow.over;
  slow.relay.close();
  await turn();
  expect(slow.said.slice(0, 5)).toEqual(["one", "two", "too slow", "memory free", "daemon: reset"]);
  expect(slow.asked.count).toBe(2);
});

test("[GS-6] a daemon that ends or breaks the stream ends it for the client, with its reason", async () => {
  const ended = createWorld([{ kind: "close", code: 1011, reason: "the desktop has ended" }]);
  ended.run();
  await ended.over;
  expect(ended.said).toEqual(["memory free", "1011 the desktop has ended"]);
  const endedByAgent = createWorld([undefined]);
  endedByAgent.run();
  await endedByAgent.over;
  expect(endedByAgent.said).toEqual(["memory free", "1011 the agent has ended the stream"]);
});
