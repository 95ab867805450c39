// The link that a server without users prints.

/** Reads the output until the link is printed and the server listens. */
export const readSetupLink = async (output: ReadableStream<Uint8Array>): Promise<string> => {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of output) {
    text += decoder.decode(bytes, { stream: true });
    const [link] = /http\S+\/setup\?token=\S+/.exec(text) ?? [];
    if (link && text.includes("Data directory:")) return link;
  }
  throw new Error(`the server ended before it listened: ${text}`);
};
