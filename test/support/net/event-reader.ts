// Reads server-sent events strictly: an event line, at most one data line, an empty line. Anything else is an error.

export type ReadEvent<T = unknown> = { event: string; data?: T };

export async function* readEvents<T = unknown>(response: Response): AsyncGenerator<ReadEvent<T>> {
  if (!response.body) throw new Error("no body");
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [eventLine = "", dataLine, ...extraLines] = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const event = /^event: (data|ping|error|end)$/.exec(eventLine)?.[1];
      if (!event || extraLines.length > 0) throw new Error(`not an event: ${eventLine}`);
      if (dataLine !== undefined && !dataLine.startsWith("data: ")) throw new Error(`not data: ${dataLine}`);
      yield { event, ...(dataLine === undefined ? {} : { data: JSON.parse(dataLine.slice(6)) }) };
    }
  }
}
