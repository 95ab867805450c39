// The model server of the chat rows: it answers every call with a stream of scripted chunks in OpenAI's protocol, all starting at the same
// moment. Argument: the port. `POST /go {chunks, per_s}` starts all waiting streams, with `chunks` each; per_s 0 means as fast as possible.
// A call whose last message is "now" is answered immediately, and so are the product's calls for titles, labels and a greeting. A call
// whose last message contains "say CHUNKS PER_S" starts immediately.
import { createServer, type Socket } from "node:net";
import { frame } from "#test/support/models/model-frames.ts";

const waiting: Socket[] = [];
/** Calls that no follower sees. */
const SIDE_CALL = /Say hello in one short|Answer with (the title|these words|the summary)/;
const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const encodeChunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const END = `${encodeChunk(frame("openai", { text: "the end" }) + frame("openai", { finish: "stop" }))}0\r\n\r\n`;

/** Words per paragraph. */
const WORDS_PER_PARAGRAPH = 50;

/** Milliseconds since 1970 with fractions, equal in all processes of a machine. */
const nowMs = (): number => performance.timeOrigin + performance.now();

const streamChunks = async (sockets: readonly Socket[], chunks: number, per_s: number): Promise<void> => {
  const startedAt = performance.now();
  for (let round = 0; round < chunks; round += 1) {
    for (const [index, socket] of sockets.entries()) {
      const text = `<${nowMs().toFixed(3)}>${round % WORDS_PER_PARAGRAPH === WORDS_PER_PARAGRAPH - 1 ? "\n\n" : " "}`;
      socket.write(encodeChunk(frame("openai", { text })));
      // The chats must not run in lockstep.
      if (per_s > 0 && (index % 10 === 9 || sockets.length < 10)) {
        const due = startedAt + ((round + (index + 1) / sockets.length) / per_s) * 1000;
        while (performance.now() < due)
          await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
      }
    }
    if (per_s === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  for (const socket of sockets) socket.write(END);
};

/** Returns the last message of a call; earlier ones are the history. */
const readLastMessage = (body: string): string => {
  const { messages = [] } = JSON.parse(body) as { messages?: { content: unknown }[] };
  return JSON.stringify(messages.at(-1)?.content ?? "");
};

const answerCall = (socket: Socket, head: string, body: string): void => {
  if (head.startsWith("GET")) return void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  if (head.startsWith("POST /go")) {
    const request = JSON.parse(body) as { chunks: number; per_s: number };
    void streamChunks(waiting.splice(0), request.chunks, request.per_s);
    return void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`);
  }
  if (head.startsWith("POST /waiting")) {
    const count = String(waiting.length);
    return void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${count.length}\r\n\r\n${count}`);
  }
  socket.write(HEAD);
  const lastMessage = readLastMessage(body);
  const [, chunks, per_s] = /\bsay (\d+) (\d+)\b/.exec(lastMessage) ?? [];
  if (lastMessage.includes('"now"') || SIDE_CALL.test(body)) socket.write(END);
  else if (chunks !== undefined) void streamChunks([socket], Number(chunks), Number(per_s));
  else waiting.push(socket);
};

createServer((socket) => {
  let text = "";
  socket.setNoDelay(true);
  socket.setEncoding("utf8");
  socket.on("error", () => {});
  socket.on("data", (piece: string) => {
    text += piece;
    for (;;) {
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
      if (Buffer.byteLength(text) < end + 4 + length) return;
      answerCall(socket, text.slice(0, end), text.slice(end + 4));
      text = "";
    }
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
