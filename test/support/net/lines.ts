// Yields the complete lines of a stream as they arrive; drops an unterminated last line.
export async function* readLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let unterminated = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const lines = (unterminated + decoder.decode(chunk, { stream: true })).split("\n");
    unterminated = lines.pop() ?? "";
    yield* lines;
  }
}
