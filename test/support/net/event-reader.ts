// Reads server-sent events strictly: an event line, at most one data line, an empty line. Anything else is an error.

export type ReadEvent<T = unknown> = { event: string; data?: T };

export async function* readEvents<T = unknown>(response: Response): AsyncGenerator<ReadEvent<T>> {
  if (!response.body) throw new Error("no body");
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [first = "", second, ...more] = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const event = /^event: (data|ping|error|end)$/.exec(first)?.[1];
      if (!event || more.length > 0) throw new Error(`not an event: ${first}`);
      if (second !== undefined && !second.startsWith("data: ")) throw new Error(`not data: ${second}`);
      yield { event, ...(second === undefined ? {} : { data: JSON.parse(second.slice(6)) }) };
    }
  }
}
