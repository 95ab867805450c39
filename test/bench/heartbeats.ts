// Many idle connected agents that only answer pings: one process with a WebSocket for each, for the row `agents`. Started as `heartbeats.ts
// URL FILE`, the file a JSON list of tokens. Prints a line once all are connected; ends with its input, after printing the number of
// answered pings and lost connections.

const [url = "", file = ""] = process.argv.slice(2);
const tokens = JSON.parse(await Bun.file(file).text()) as string[];
const target = Object.assign(new URL("/api/v2/workspaceagents/me/rpc?version=2.10", url), { protocol: "ws:" });

const HEADER_BYTES = 12;
const PING = 2;
const ACK = 2;
/** Number of concurrent connection attempts that a server accepts without overflowing its queue. */
const OPENING = 64;

let answered = 0;
let lost = 0;
let isOver = false;

/** The frames of one message; the server sends only headers to idle agents. */
const answer = (socket: WebSocket, data: ArrayBuffer): void => {
  const view = new DataView(data);
  for (let at = 0; at + HEADER_BYTES <= view.byteLength; at += HEADER_BYTES) {
    if (view.getUint8(at + 1) !== PING || view.getUint16(at + 2) === ACK) continue;
    const reply = new Uint8Array(data.slice(at, at + HEADER_BYTES));
    new DataView(reply.buffer).setUint16(2, ACK);
    socket.send(reply);
    answered += 1;
  }
};

const open = (token: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(target, { headers: { "Service-Session-Token": token } } as never);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => resolve();
    socket.onerror = () => reject(new Error("the server refuses an agent"));
    socket.onmessage = ({ data }) => answer(socket, data as ArrayBuffer);
    socket.onclose = () => {
      if (!isOver) lost += 1;
    };
  });

for (let at = 0; at < tokens.length; at += OPENING) await Promise.all(tokens.slice(at, at + OPENING).map(open));
process.stdout.write("ready\n");
await Bun.stdin.text();
isOver = true;
process.stdout.write(`${JSON.stringify({ answered, lost })}\n`);
process.exit(0);
