import { describe, expect, test } from "bun:test";
import { callBidi, callServerStream } from "#src/wire/drpc/client.ts";
import { encodePackets, KIND, NO_BODY, RpcError } from "#src/wire/drpc/frame.ts";
import type { Handler } from "#src/wire/drpc/server.ts";
import { ascii, decodeText, serveHandlers, waitForAbort } from "./calls.ts";
import { nextTurn } from "./support.ts";

describe("a streaming call", () => {
  const counting: Handler = {
    kind: "server_streaming",
    async *run(request) {
      for (let i = 0; i < Number(decodeText(request)); i++) yield ascii(`${i}`);
    },
  };

  test("[WI-13] from the server ends with CloseSend after all messages", async () => {
    const { client, server } = serveHandlers({ "/svc/Count": counting });
    const numbers: string[] = [];
    for await (const answer of callServerStream(client, "/svc/Count", ascii("100"))) numbers.push(decodeText(answer));
    expect(numbers).toEqual(Array.from({ length: 100 }, (_, i) => `${i}`));
    await nextTurn();
    expect(client.streams + server.streams).toBe(0);
  });

  test("[WI-13] applies backpressure to the server while nothing reads", async () => {
    let created = 0;
    const { client } = serveHandlers({
      "/svc/Flood": {
        kind: "server_streaming",
        async *run(_request, { signal }) {
          while (!signal.aborted) {
            created += 1;
            yield new Uint8Array(32 * 1024);
          }
        },
      },
    });
    const answers = callServerStream(client, "/svc/Flood", NO_BODY);
    await answers.next();
    await nextTurn();
    const createdBefore = created;
    expect(createdBefore).toBeLessThan(16);
    await nextTurn();
    expect(created).toBe(createdBefore);
    await answers.return();
  });

  test("[WI-15] drops a response that waits for a window update when the caller ends its side", async () => {
    const finished = Promise.withResolvers<void>();
    const { client, server } = serveHandlers({
      "/svc/Flood": {
        kind: "server_streaming",
        async *run() {
          try {
            for (;;) yield new Uint8Array(64 * 1024);
          } finally {
            finished.resolve();
          }
        },
      },
    });
    const raw = await client.open();
    await raw.write(
      encodePackets(
        { kind: KIND.invoke, stream_id: 1, message_id: 1, body: ascii("/svc/Flood") },
        { kind: KIND.message, stream_id: 1, message_id: 2, body: NO_BODY },
      ),
    );
    await nextTurn();
    await raw.end();
    await finished.promise;
    await nextTurn();
    expect(server.streams).toBe(0);
  });

  test("[WI-15] from the server is aborted there when the client leaves early", async () => {
    const finished = Promise.withResolvers<void>();
    const { client } = serveHandlers({
      "/svc/Once": {
        kind: "server_streaming",
        async *run(_request, { signal }) {
          yield ascii("only");
          await waitForAbort(signal);
          finished.resolve();
        },
      },
    });
    for await (const _answer of callServerStream(client, "/svc/Once", NO_BODY)) break;
    await finished.promise;
  });

  test("[WI-14] can fail after some messages", async () => {
    const { client } = serveHandlers({
      "/svc/Half": {
        kind: "server_streaming",
        async *run() {
          yield ascii("one");
          throw new RpcError(3, "no more");
        },
      },
    });
    const answers = callServerStream(client, "/svc/Half", NO_BODY);
    expect((await answers.next()).value).toEqual(ascii("one"));
    await expect(answers.next()).rejects.toMatchObject({ code: 3, message: "no more" });
  });

  const shouting: Handler = {
    kind: "bidi_streaming",
    async *run(requests) {
      for await (const request of requests) yield ascii(decodeText(request).toUpperCase());
      yield ascii("END");
    },
  };

  test("[WI-13] in both directions keeps both sides open until each ends", async () => {
    const { client, server } = serveHandlers({ "/svc/Shout": shouting });
    const bidi = await callBidi(client, "/svc/Shout");
    const answers = bidi[Symbol.asyncIterator]();
    await bidi.send(ascii("a"));
    expect(await answers.next()).toEqual({ done: false, value: ascii("A") });
    await bidi.send(ascii("b"));
    expect(await answers.next()).toEqual({ done: false, value: ascii("B") });
    await bidi.closeSend();
    expect(await answers.next()).toEqual({ done: false, value: ascii("END") });
    expect((await answers.next()).done).toBe(true);
    await nextTurn();
    expect(client.streams + server.streams).toBe(0);
  });

  test("[WI-15] in both directions can be canceled", async () => {
    const failed = Promise.withResolvers<unknown>();
    const { client } = serveHandlers({
      "/svc/Listen": {
        kind: "bidi_streaming",
        // biome-ignore lint/correctness/useYield: it only listens
        async *run(requests) {
          try {
            for await (const _request of requests);
          } catch (error) {
            failed.resolve(error);
          }
        },
      },
    });
    const bidi = await callBidi(client, "/svc/Listen");
    await bidi.send(ascii("a"));
    bidi.cancel();
    expect(await failed.promise).toMatchObject({ failure: "reset" });
    await expect(bidi.send(ascii("b"))).rejects.toMatchObject({ failure: "reset" });
  });
});
