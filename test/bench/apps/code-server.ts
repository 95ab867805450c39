// The part of code-server's remote protocol that reads and writes files, over the WebSocket that its page opens.
import { openSocket, type Target } from "#test/api/applications/load.ts";

const KIND = { regular: 1, control: 2, ack: 3 } as const;
const HEADER_BYTES = 13;
const TYPE = { undefined: 0, text: 1, bytes: 3, list: 4, object: 5, number: 6 } as const;
const REQUEST = 100;
const [SUCCESS, FAILURES] = [201, [202, 203]] as const;

const encodeLength = (value: number): Buffer => {
  const bytes: number[] = [];
  let remaining = value;
  do {
    bytes.push((remaining & 0x7f) | (remaining > 0x7f ? 0x80 : 0));
    remaining >>>= 7;
  } while (remaining > 0);
  return Buffer.from(bytes);
};

type Value = string | number | undefined | Buffer | readonly Value[] | { readonly [name: string]: Value };

const encodeValue = (value: Value): Buffer => {
  if (value === undefined) return Buffer.from([TYPE.undefined]);
  if (typeof value === "number") return Buffer.concat([Buffer.from([TYPE.number]), encodeLength(value)]);
  if (Array.isArray(value))
    return Buffer.concat([Buffer.from([TYPE.list]), encodeLength(value.length), ...value.map(encodeValue)]);
  const [type, bytes] = Buffer.isBuffer(value)
    ? [TYPE.bytes, value]
    : typeof value === "string"
      ? [TYPE.text, Buffer.from(value)]
      : [TYPE.object, Buffer.from(JSON.stringify(value))];
  return Buffer.concat([Buffer.from([type]), encodeLength(bytes.length), bytes]);
};

/** Reads one value and returns it with the index of its end. Texts and objects remain bytes. */
const decodeValue = (from: Buffer, start: number): [value: unknown, end: number] => {
  let offset = start + 1;
  const type = from[start];
  if (type === TYPE.undefined) return [undefined, offset];
  let size = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = from[offset++] as number;
    size |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (type === TYPE.number) return [size, offset];
  if (type !== TYPE.list) return [from.subarray(offset, offset + size), offset + size];
  const list: unknown[] = [];
  for (let n = 0; n < size; n += 1) {
    const [value, end] = decodeValue(from, offset);
    list.push(value);
    offset = end;
  }
  return [list, offset];
};

type PendingCall = { resolve: (value: Buffer) => void; reject: (error: Error) => void };

export class CodeServerFiles implements Disposable {
  readonly #socket: WebSocket;
  readonly #calls = new Map<number, PendingCall>();
  #controls: ((message: Record<string, string>) => void)[] = [];
  #parts: Buffer[] = [];
  #bufferedBytes = 0;
  #sentCount = 0;
  #nextId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#receive(data as unknown as Buffer);
    socket.onclose = ({ code, reason }) => {
      for (const { reject } of this.#calls.values()) reject(new Error(`closed with ${code} ${reason}`));
    };
  }

  /** Connects as the page does. */
  static async open(side: Target, quality: string, commit: string): Promise<CodeServerFiles> {
    const path = `/${quality}-${commit}?reconnectionToken=${crypto.randomUUID()}&reconnection=false&skipWebSocketFrames=false`;
    const files = new CodeServerFiles(await openSocket(side, path));
    const challenge = files.#awaitControl();
    files.#send(KIND.control, Buffer.from(JSON.stringify({ type: "auth", auth: "0".repeat(20), data: "x" })));
    const { data = "" } = await challenge;
    const reply = files.#awaitControl();
    const connection = { type: "connectionType", commit, signedData: data, desiredConnectionType: 1 };
    files.#send(KIND.control, Buffer.from(JSON.stringify(connection)));
    const { type, reason } = await reply;
    if (type !== "ok") throw new Error(`code-server answered ${type} ${reason}`);
    files.#send(KIND.regular, encodeValue({ remoteAuthority: "load", clientId: "load" }));
    return files;
  }

  async write(path: string, bytes: Buffer): Promise<void> {
    const options = { create: true as unknown as Value, overwrite: true as unknown as Value };
    await this.#call("writeFile", [toUri(path), bytes, options]);
  }

  read(path: string): Promise<Buffer> {
    return this.#call("readFile", [toUri(path), {}]);
  }

  #call(name: string, args: Value): Promise<Buffer> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#send(
        KIND.regular,
        Buffer.concat([encodeValue([REQUEST, id, "remoteFilesystem", name]), encodeValue(args)]),
      );
    });
  }

  #awaitControl(): Promise<Record<string, string>> {
    return new Promise((resolve) => this.#controls.push(resolve));
  }

  #send(kind: number, body: Buffer, ack = 0): void {
    const head = Buffer.alloc(HEADER_BYTES);
    head[0] = kind;
    if (kind === KIND.regular) head.writeUInt32BE(++this.#sentCount, 1);
    head.writeUInt32BE(ack, 5);
    head.writeUInt32BE(body.length, 9);
    this.#socket.send(Buffer.concat([head, body]));
  }

  /** Reassembles protocol messages from WebSocket messages, because large ones are split. */
  #receive(data: Buffer): void {
    this.#parts.push(Buffer.from(data));
    this.#bufferedBytes += data.length;
    for (;;) {
      const firstPart = this.#parts[0];
      if (this.#bufferedBytes < HEADER_BYTES || firstPart === undefined) return;
      if (firstPart.length < HEADER_BYTES) this.#parts = [Buffer.concat(this.#parts)];
      const size = HEADER_BYTES + (this.#parts[0] as Buffer).readUInt32BE(9);
      if (this.#bufferedBytes < size) return;
      const buffered = Buffer.concat(this.#parts);
      this.#parts = buffered.length > size ? [buffered.subarray(size)] : [];
      this.#bufferedBytes = buffered.length - size;
      this.#handleMessage(buffered[0] as number, buffered.readUInt32BE(1), buffered.subarray(HEADER_BYTES, size));
    }
  }

  #handleMessage(kind: number, id: number, body: Buffer): void {
    if (kind === KIND.control) this.#controls.shift()?.(JSON.parse(body.toString()) as Record<string, string>);
    if (kind !== KIND.regular) return;
    this.#send(KIND.ack, Buffer.alloc(0), id);
    const [head, end] = decodeValue(body, 0);
    const [type, call] = head as [number, number];
    const pending = this.#calls.get(call);
    if (!pending) return;
    this.#calls.delete(call);
    const [value] = decodeValue(body, end);
    if (type === SUCCESS) pending.resolve(value as Buffer);
    else if (FAILURES.includes(type as 202)) pending.reject(new Error(String(value)));
  }

  [Symbol.dispose](): void {
    this.#socket.onclose = null;
    this.#socket.close();
  }
}

const toUri = (path: string): Value => ({ $mid: 1, scheme: "vscode-remote", authority: "load", path });
