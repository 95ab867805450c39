// A model server's stream is normalized line by line before the provider's package reads it, however it is split.
import { expect, test } from "bun:test";
import { createNormalizingFetch } from "#src/llm/normalize-stream.ts";
import { scaleTimeout } from "#test/support/pace.ts";

const STREAM_REQUEST = { body: JSON.stringify({ stream: true }) };

/** Responds with these pieces. Afterwards the stream closes, breaks, or stays open. */
const makeResponse = (pieces: readonly Uint8Array[], end: "closes" | "breaks" | "waits" = "closes") => {
  const stream = { cancelled: undefined as unknown };
  const remaining = [...pieces];
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = remaining.shift();
      if (piece) controller.enqueue(piece);
      else if (end === "closes") controller.close();
      else if (end === "breaks") controller.error(new Error("cut off"));
      else await new Promise(() => {});
    },
    cancel(reason) {
      stream.cancelled = reason;
    },
  });
  const fetch = createNormalizingFetch(
    async () => new Response(body, { headers: { "content-type": "text/event-stream" } }),
    {
      reader: () => ({
        read: (line) => line.replace("odd", "sound"),
        end: () => "data: the end",
      }),
      toStream: async (response) => response,
    },
  );
  return { stream, answer: () => fetch("http://model.example/", STREAM_REQUEST) };
};

const TEXT = "\uFEFFdata: größe 😀 odd\n\nevent: odd\r\ndata: plain \u2028data: odd\n\ndata: ö";
const NORMALIZED =
  "data: größe 😀 sound\n\nevent: odd\r\ndata: plain \u2028data: sound\n\ndata: ö\n\ndata: the end\n\n";

test("[MO-44] a stream has the same lines even if it is split within a line or a character", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (let i = 0; i <= bytes.length; i++) {
    const { answer } = makeResponse([bytes.slice(0, i), bytes.slice(i)]);
    expect(await (await answer()).text()).toBe(NORMALIZED);
  }
  const { answer } = makeResponse([...bytes].map((byte) => Uint8Array.of(byte)));
  expect(await (await answer()).text()).toBe(NORMALIZED);
});

test("[MO-44] a broken stream fails for its reader too, and an abandoned stream is canceled", async () => {
  const piece = new TextEncoder().encode("data: one\n\n");
  const broken = (await makeResponse([piece], "breaks").answer()).body?.getReader();
  expect((await broken?.read())?.value).toEqual(piece);
  expect(await broken?.read().catch((error: Error) => error.message)).toBe("cut off");

  const { stream, answer } = makeResponse([piece], "waits");
  const reader = (await answer()).body?.getReader();
  await reader?.read();
  await reader?.cancel("enough");
  expect(stream.cancelled).toBe("enough");
});

test("[MO-44] a line of 24 MiB in small pieces takes time in proportion to its length", async () => {
  const piece = new TextEncoder().encode("x".repeat(2_048));
  const count = 24 * 512;
  const start = new TextEncoder().encode('data: "');
  const end = new TextEncoder().encode('"\n\n');
  const { answer } = makeResponse([start, ...Array.from({ length: count }, () => piece), end]);
  const startedMs = performance.now();
  // If the line were joined with each piece, this would take minutes.
  expect((await (await answer()).text()).length).toBe(count * 2_048 + 'data: ""\n\n\n\ndata: the end\n\n'.length);
  expect(performance.now() - startedMs).toBeLessThan(scaleTimeout(5_000));
});
