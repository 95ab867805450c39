// Reads server-sent events from a response.

export interface ServerEvent {
  event: string;
  data: string;
}

/** The server sends something at least every 15 s. After this long without a byte, the connection is considered lost. */
const IDLE_TIMEOUT_MS = 45_000;

/** A stream's connection ended without the last event. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** Yields the events of a stream. Throws ConnectionLost when the connection breaks, ends or is idle for too long. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, never> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await readInTime(reader);
      if (done) throw new ConnectionLost("The stream ended.");
      text += value;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) yield parseEvent(block);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

const readInTime = async (reader: ReadableStreamDefaultReader<string>) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new ConnectionLost("The stream was silent for too long.")), IDLE_TIMEOUT_MS);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch (error) {
    throw new ConnectionLost("The stream broke off.", { cause: error });
  } finally {
    clearTimeout(timer);
  }
};

const parseEvent = (block: string): ServerEvent => {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === "event") event = value;
    if (field === "data") data.push(value);
  }
  return { event, data: data.join("\n") };
};
