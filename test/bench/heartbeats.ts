// Many idle connected agents that only answer pings: one process with a WebSocket for each, for the row `agents`. Started as `heartbeats.ts
// URL FILE`, where the file is a JSON list of tokens. Prints a line once all are connected. Ends when its input ends, after it has printed
// the number of answered pings and lost connections.

const [url = "", file = ""] = process.argv.slice(2);
const tokens = JSON.parse(await Bun.file(file).text()) as string[];
const target = Object.assign(new URL("/api/v2/workspaceagents/me/rpc?version=2.10", url), { protocol: "ws:" });

const HEADER_BYTES = 12;
const PING_FRAME = 2;
const ACK_FLAG = 2;
/** The number of connections that are opened at the same time without overflowing the server's queue. */
const MAX_OPENING = 64;

let answeredCount = 0;
let lostCount = 0;
let isEnding = false;

/** Answers the pings in one message. The server sends only headers to idle agents. */
const answerPings = (socket: WebSocket, data: ArrayBuffer): void => {
  const view = new DataView(data);
  for (let offset = 0; offset + HEADER_BYTES <= view.byteLength; offset += HEADER_BYTES) {
    if (view.getUint8(offset + 1) !== PING_FRAME || view.getUint16(offset + 2) === ACK_FLAG) continue;
    const reply = new Uint8Array(data.slice(offset, offset + HEADER_BYTES));
    new DataView(reply.buffer).setUint16(2, ACK_FLAG);
    socket.send(reply);
    answeredCount += 1;
  }
};

const open = (token: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(target, { headers: { "Service-Session-Token": token } } as never);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => resolve();
    socket.onerror = () => reject(new Error("the server refuses an agent"));
    socket.onmessage = ({ data }) => answerPings(socket, data as ArrayBuffer);
    socket.onclose = () => {
      if (!isEnding) lostCount += 1;
    };
  });

for (let start = 0; start < tokens.length; start += MAX_OPENING)
  await Promise.all(tokens.slice(start, start + MAX_OPENING).map(open));
process.stdout.write("ready\n");
await Bun.stdin.text();
isEnding = true;
process.stdout.write(`${JSON.stringify({ answered: answeredCount, lost: lostCount })}\n`);
process.exit(0);
