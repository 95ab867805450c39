import { describe, expect, test } from "bun:test";
import { notFound } from "#base/errors.ts";
import { call, callBidi } from "#src/wire/drpc/client.ts";
import { encodePackets, KIND, MAX_PACKET, NO_BODY, RpcError } from "#src/wire/drpc/frame.ts";
import { PacketReader } from "#src/wire/drpc/packets.ts";
import { serve } from "#src/wire/drpc/server.ts";
import { ascii, decodeText, serveHandlers, unary, waitForAbort } from "./calls.ts";
import { hex, makePattern, nextTurn, readAll, sessionPair } from "./support.ts";

describe("a call", () => {
  test("[WI-13] that is unary has the same bytes as the Go client's request and response", async () => {
    const { client, server, clock } = sessionPair();
    const answer = call(client, "/svc/Echo", ascii("hello"));
    const stream = await server.accept();
    if (!stream) throw new Error("The session ended.");
    const requested = await stream.read();
    expect(requested).toEqual(
      Uint8Array.of(
        ...hex("03 01 01 09"),
        ...ascii("/svc/Echo"),
        ...hex("05 01 02 05"),
        ...ascii("hello"),
        ...hex("0d 01 03 00"),
      ),
    );
    await stream.write(hex("05 01 01 05 776f726c64 0d 01 02 00"));
    expect(decodeText(await answer)).toBe("world");
    expect(await readAll(stream)).toEqual(Buffer.from(hex("0b 01 04 00")));
    await stream.end();

    const raw = await client.open();
    const accepted = await server.accept();
    void serve(accepted!, new Map([["/svc/Echo", unary((request) => request)]]), { clock });
    await raw.write(requested!);
    expect(await raw.read()).toEqual(hex("05 01 01 05 68656c6c6f 0d 01 02 00"));
    await raw.write(hex("0b 01 04 00"));
    await raw.end();
    expect(await readAll(raw)).toHaveLength(0);
    expect(client.streams + server.streams).toBe(0);
    expect(clock.timers).toBe(0);
  });

  test("[WI-13] with metadata before the method skips it", async () => {
    const { client } = serveHandlers({ "/svc/Echo": unary((request) => request) });
    const raw = await client.open();
    await raw.write(
      encodePackets(
        { kind: KIND.metadata, stream_id: 1, message_id: 1, body: hex("0a 04 0a00 1200") },
        { kind: KIND.invoke, stream_id: 1, message_id: 2, body: ascii("/svc/Echo") },
        { kind: KIND.message, stream_id: 1, message_id: 3, body: ascii("hi") },
      ),
    );
    expect(await new PacketReader(raw).next()).toMatchObject({ kind: KIND.message, body: ascii("hi") });
  });

  test("[WI-13] of 3 MiB is sent and answered through 256 KiB windows", async () => {
    const { client } = serveHandlers({ "/svc/Echo": unary((request) => request) });
    const request = makePattern(3 * 1024 * 1024);
    const answer = await call(client, "/svc/Echo", request);
    expect(Buffer.from(answer).equals(request)).toBe(true);
  });

  test("[WI-12] of more than 4 MiB is refused on both sides", async () => {
    const { client } = serveHandlers({
      "/svc/Echo": unary((request) => request),
      "/svc/Huge": unary(() => new Uint8Array(MAX_PACKET + 1)),
    });
    await expect(call(client, "/svc/Echo", new Uint8Array(MAX_PACKET + 1))).rejects.toMatchObject({
      failure: "too_large",
    });
    await expect(call(client, "/svc/Huge", NO_BODY)).rejects.toMatchObject({
      code: 0,
      message: "A message of more than 4 MiB.",
    });
    const raw = await client.open();
    await raw.write(encodePackets({ kind: KIND.invoke, stream_id: 1, message_id: 1, body: ascii("/svc/Echo") }));
    await raw.write(hex("05 01 02 81 80 80 02"));
    const answer = await new PacketReader(raw).next();
    expect(answer?.kind).toBe(KIND.error);
    expect(decodeText(answer!.body.subarray(8))).toContain("4 MiB");
    expect(await raw.read()).toBeUndefined();
  });

  test("[WI-19] is refused while unfinished messages on all streams exceed 8 MiB", async () => {
    const { client } = serveHandlers({ "/svc/Size": unary(({ byteLength }) => ascii(String(byteLength))) });
    const size = 3 * 1024 * 1024;
    const [start, end] = (() => {
      const packets = encodePackets(
        { kind: KIND.invoke, stream_id: 1, message_id: 1, body: ascii("/svc/Size") },
        { kind: KIND.message, stream_id: 1, message_id: 2, body: makePattern(size) },
      );
      return [packets.subarray(0, -1), packets.subarray(-1)];
    })();
    const startCall = async () => {
      const stream = await client.open();
      await stream.write(start);
      return stream;
    };
    const readAnswer = async (stream: Awaited<ReturnType<typeof startCall>>): Promise<string> => {
      const answer = await new PacketReader(stream).next();
      return answer?.kind === KIND.error ? decodeText(answer.body.subarray(8)) : decodeText(answer?.body ?? NO_BODY);
    };
    const [first, second, third] = [await startCall(), await startCall(), await startCall()];
    expect(await readAnswer(third)).toBe("The streams of the connection hold too many bytes of unfinished messages.");
    second.reset();
    await nextTurn();
    const fourth = await startCall();
    await first.write(end);
    expect(await readAnswer(first)).toBe(String(size));
    const fifth = await startCall();
    await fourth.write(end);
    await fifth.write(end);
    expect([await readAnswer(fourth), await readAnswer(fifth)]).toEqual([String(size), String(size)]);
    const long = await client.open();
    await long.write(encodePackets({ kind: KIND.invoke, stream_id: 1, message_id: 1, body: new Uint8Array(1_025) }));
    await expect(long.read()).rejects.toMatchObject({ failure: "reset" });
  });

  test("[WI-19] is refused when its unread messages exceed 8 MiB, and frees the memory when it ends", async () => {
    const { client } = serveHandlers({
      "/svc/Size": unary(({ byteLength }) => ascii(String(byteLength))),
      "/svc/Watch": {
        kind: "server_streaming",
        async *run(_, { signal }) {
          yield NO_BODY;
          await waitForAbort(signal);
          throw signal.reason;
        },
      },
    });
    const message = (message_id: number, size: number) => ({
      kind: KIND.message,
      stream_id: 1,
      message_id,
      body: makePattern(size),
    });
    const invocation = { kind: KIND.invoke, stream_id: 1, message_id: 1, body: ascii("/svc/Watch") };
    const watch = async () => {
      const stream = await client.open();
      const packets = new PacketReader(stream);
      await stream.write(encodePackets(invocation, message(2, 0)));
      expect((await packets.next())?.kind).toBe(KIND.message);
      await stream.write(encodePackets(message(3, 1), message(4, 3 * 1024 * 1024)));
      return { stream, packets };
    };
    const [first, second, third, fourth] = [await watch(), await watch(), await watch(), await watch()];
    for (const { packets } of [third, fourth]) {
      const answer = await packets.next();
      expect(decodeText(answer!.body.subarray(8))).toContain("too many bytes of unfinished messages");
    }
    first.stream.reset();
    second.stream.reset();
    await nextTurn();
    expect(decodeText(await call(client, "/svc/Size", makePattern(MAX_PACKET)))).toBe(String(MAX_PACKET));
  });

  test("[WI-14] of an unknown method returns code 12", async () => {
    const { client } = serveHandlers({});
    const failed = call(client, "/svc/Nothing", makePattern(2_000_000));
    await expect(failed).rejects.toMatchObject({ code: 12, message: "unknown rpc: /svc/Nothing" });
  });

  test("[WI-14] of an unknown method fails after a second even if the caller sends no request", async () => {
    const { client, clock } = serveHandlers({});
    const bidi = await callBidi(client, "/svc/Nothing");
    const refused = bidi[Symbol.asyncIterator]()
      .next()
      .catch((error: unknown) => error);
    await nextTurn();
    await clock.advance(1_000);
    expect(await refused).toMatchObject({ code: 12 });
  });

  test("[WI-13] stays open after the caller's Close packet until the caller ends its side", async () => {
    const { client, server } = serveHandlers({ "/svc/Echo": unary((request) => request) });
    const raw = await client.open();
    await raw.write(
      encodePackets(
        { kind: KIND.invoke, stream_id: 1, message_id: 1, body: ascii("/svc/Echo") },
        { kind: KIND.message, stream_id: 1, message_id: 2, body: NO_BODY },
        { kind: KIND.close_send, stream_id: 1, message_id: 3, body: NO_BODY },
      ),
    );
    expect(await raw.read()).toBeDefined();
    let hasEnded = false;
    const end = raw.read().then((chunk) => {
      hasEnded = chunk === undefined;
    });
    await raw.write(hex("0b 01 04 00"));
    await nextTurn();
    expect(hasEnded).toBe(false);
    await raw.end();
    await end;
    expect(hasEnded).toBe(true);
    expect(server.streams).toBe(0);
  });

  test("[WI-14] that fails carries its code and message; an unexpected error is hidden and reported", async () => {
    const errors: unknown[] = [];
    const { client } = serveHandlers(
      {
        "/svc/Coded": unary(() => {
          throw new RpcError(7, "not yours");
        }),
        "/svc/Known": unary(() => {
          throw notFound();
        }),
        "/svc/Broken": unary(() => {
          throw new Error("password is hunter2");
        }),
      },
      (method, error) => errors.push([method, error]),
    );
    await expect(call(client, "/svc/Coded", NO_BODY)).rejects.toMatchObject({ code: 7, message: "not yours" });
    await expect(call(client, "/svc/Known", NO_BODY)).rejects.toMatchObject({ code: 0, message: notFound().message });
    await expect(call(client, "/svc/Broken", NO_BODY)).rejects.toMatchObject({ code: 0, message: "internal error" });
    expect(errors).toEqual([["/svc/Broken", new Error("password is hunter2")]]);
  });

  test("[WI-15] that is canceled resets its stream and aborts the handler", async () => {
    const receivedSignal = Promise.withResolvers<AbortSignal>();
    const finished = Promise.withResolvers<void>();
    const { client, server } = serveHandlers({
      "/svc/Wait": unary(async (_, signal) => {
        receivedSignal.resolve(signal);
        await waitForAbort(signal);
        finished.resolve();
        return NO_BODY;
      }),
    });
    const controller = new AbortController();
    const answer = call(client, "/svc/Wait", NO_BODY, controller.signal);
    const signal = await receivedSignal.promise;
    expect(signal.aborted).toBe(false);
    controller.abort();
    await expect(answer).rejects.toMatchObject({ failure: "reset" });
    await finished.promise;
    await nextTurn();
    expect(client.streams + server.streams).toBe(0);
    await expect(call(client, "/svc/Wait", NO_BODY, controller.signal)).rejects.toMatchObject({ failure: "closed" });
  });

  test.each([
    ["a Cancel packet", hex("89 01 03 00"), false],
    ["a Close packet", hex("0b 01 03 00"), false],
    ["the end of the caller's side", hex(""), true],
  ])("[WI-15] is aborted by %s", async (_cause, bytes, endsStream) => {
    const finished = Promise.withResolvers<void>();
    const { client } = serveHandlers({
      "/svc/Wait": unary(async (_request, signal) => {
        await waitForAbort(signal);
        finished.resolve();
        return NO_BODY;
      }),
    });
    const raw = await client.open();
    await raw.write(
      encodePackets(
        { kind: KIND.invoke, stream_id: 1, message_id: 1, body: ascii("/svc/Wait") },
        { kind: KIND.message, stream_id: 1, message_id: 2, body: NO_BODY },
      ),
    );
    await raw.write(bytes);
    if (endsStream) await raw.end();
    await finished.promise;
  });

  test("[WI-15] is aborted when the session is lost", async () => {
    const started = Promise.withResolvers<void>();
    const finished = Promise.withResolvers<void>();
    const { client, a, served } = serveHandlers({
      "/svc/Wait": unary(async (_request, signal) => {
        started.resolve();
        await waitForAbort(signal);
        finished.resolve();
        return NO_BODY;
      }),
    });
    const answer = call(client, "/svc/Wait", NO_BODY);
    await started.promise;
    a.stream.close();
    await finished.promise;
    await served;
    await expect(answer).rejects.toMatchObject({ failure: "closed" });
  });

  test("[WI-15] whose caller never ends it is reset 30 s after the response", async () => {
    const { client, server, clock } = serveHandlers({ "/svc/Echo": unary((request) => request) });
    const raw = await client.open();
    await raw.write(
      encodePackets(
        { kind: KIND.invoke, stream_id: 1, message_id: 1, body: ascii("/svc/Echo") },
        { kind: KIND.message, stream_id: 1, message_id: 2, body: NO_BODY },
      ),
    );
    await nextTurn();
    await clock.advance(29_999);
    expect(server.streams).toBe(1);
    await clock.advance(1);
    expect(await raw.closed).toMatchObject({ failure: "reset" });
  });

  test("[WI-13] with a malformed start resets only its stream, not the session", async () => {
    const { client } = serveHandlers({ "/svc/Echo": unary((request) => request) });
    const raw = await client.open();
    await raw.write(hex("05 01 01 00"));
    expect(await raw.closed).toMatchObject({ failure: "reset" });
    expect(decodeText(await call(client, "/svc/Echo", ascii("fine")))).toBe("fine");
  });
});
