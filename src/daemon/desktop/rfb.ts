// A small client of the remote framebuffer protocol (RFC 6143) that captures the screen and sends pointer and keyboard events for a model
// (rule DT-4). Supports only servers without encryption and authentication, such as the daemon's own desktop. Limits the size of what a
// server sends.
import { type Duplex, Lookahead, WireError } from "#src/wire/index.ts";

/** Four bytes per pixel: blue, green, red, unused. */
export type Screen = { readonly width: number; readonly height: number; readonly pixels: Uint8Array };

const MAX_PIXELS = 8_192 * 8_192;
const MAX_TEXT_BYTES = 1024 * 1024;
const NO_AUTHENTICATION = 1;
const RAW_ENCODING = 0;
const COPY_RECT_ENCODING = 1;
const DESKTOP_SIZE_ENCODING = -223;

export class RfbClient {
  readonly #stream: Lookahead;
  #screen: Screen;

  private constructor(stream: Lookahead, width: number, height: number) {
    this.#stream = stream;
    this.#screen = createScreen(width, height);
  }

  /** Performs the handshake and asks for shared access. Throws WireError. */
  static async open(duplex: Duplex): Promise<RfbClient> {
    const stream = new Lookahead(duplex);
    const version = /^RFB 003\.(\d{3})\n$/.exec(new TextDecoder().decode(await stream.readExactly(12)))?.[1];
    if (version === undefined) throw protocolError("This is no VNC server.");
    const minor = Math.min(8, Number(version));
    await stream.write(new TextEncoder().encode(`RFB 003.00${minor >= 7 ? minor : 3}\n`));
    await negotiate(stream, minor);
    await stream.write(Uint8Array.of(1));
    const header = toView(await stream.readExactly(24));
    await stream.readExactly(requireAtMost(header.getUint32(20), 4_096));
    const client = new RfbClient(stream, header.getUint16(0), header.getUint16(2));
    // 32 bits per pixel, 24 used, little-endian, with red in the highest byte, then green and blue.
    await stream.write(Uint8Array.of(0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0));
    // The accepted encodings, as signed big-endian numbers.
    const encodings = [
      ...[0, 0, 0, RAW_ENCODING],
      ...[0, 0, 0, COPY_RECT_ENCODING],
      ...[255, 255, 255, 256 + DESKTOP_SIZE_ENCODING],
    ];
    await stream.write(Uint8Array.of(2, 0, 0, 3, ...encodings));
    return client;
  }

  get size(): { width: number; height: number } {
    return this.#screen;
  }

  /** Captures the whole screen. */
  async captureScreen(): Promise<Screen> {
    await this.#requestUpdate();
    for (let pixelCount = 0; pixelCount < this.#screen.width * this.#screen.height; ) {
      const updated = await this.#readMessage();
      if (updated === "resized") {
        pixelCount = 0;
        await this.#requestUpdate();
      } else pixelCount += updated;
    }
    return this.#screen;
  }

  /** Moves the pointer with these buttons down: 1 left, 2 middle, 4 right, 8 and 16 wheel up and down, 32 and 64 wheel left and right. */
  movePointer(x: number, y: number, buttons: number): Promise<void> {
    return this.#stream.write(Uint8Array.of(5, buttons, x >> 8, x & 255, y >> 8, y & 255));
  }

  sendKey(keysym: number, down: boolean): Promise<void> {
    const bytes = Uint8Array.of(4, down ? 1 : 0, 0, 0, 0, 0, 0, 0);
    toView(bytes).setUint32(4, keysym);
    return this.#stream.write(bytes);
  }

  #requestUpdate(): Promise<void> {
    const { width, height } = this.#screen;
    return this.#stream.write(Uint8Array.of(3, 0, 0, 0, 0, 0, width >> 8, width & 255, height >> 8, height & 255));
  }

  /** Handles one server message and returns the number of pixels it updated. */
  async #readMessage(): Promise<number | "resized"> {
    const [kind] = await this.#stream.readExactly(1);
    if (kind === 0) return this.#update();
    if (kind === 1) {
      const colorCount = toView(await this.#stream.readExactly(5)).getUint16(3);
      await this.#stream.readExactly(colorCount * 6);
    } else if (kind === 3) {
      const length = toView(await this.#stream.readExactly(7)).getUint32(3);
      await this.#stream.readExactly(requireAtMost(length, MAX_TEXT_BYTES));
    } else if (kind !== 2) throw protocolError("The VNC server sent an unknown message.");
    return 0;
  }

  async #update(): Promise<number | "resized"> {
    const count = toView(await this.#stream.readExactly(3)).getUint16(1);
    let pixelCount = 0;
    for (let i = 0; i < count; i += 1) {
      const header = toView(await this.#stream.readExactly(12));
      const [x, y, width, height] = [
        header.getUint16(0),
        header.getUint16(2),
        header.getUint16(4),
        header.getUint16(6),
      ];
      const encoding = header.getInt32(8);
      if (encoding === DESKTOP_SIZE_ENCODING) {
        this.#screen = createScreen(width, height);
        return "resized";
      }
      if (x + width > this.#screen.width || y + height > this.#screen.height)
        throw protocolError("A part is off the screen.");
      if (encoding === RAW_ENCODING) await this.#drawRectangle(x, y, width, height);
      else if (encoding === COPY_RECT_ENCODING) await this.#copy(x, y, width, height);
      else throw protocolError("The VNC server sent an encoding that was not requested.");
      pixelCount += width * height;
    }
    return pixelCount;
  }

  async #drawRectangle(x: number, y: number, width: number, height: number): Promise<void> {
    const { pixels, width: screenWidth } = this.#screen;
    for (let row = 0; row < height; row += 1) {
      pixels.set(await this.#stream.readExactly(width * 4), ((y + row) * screenWidth + x) * 4);
    }
  }

  async #copy(x: number, y: number, width: number, height: number): Promise<void> {
    const { pixels, width: screenWidth, height: screenHeight } = this.#screen;
    const from = toView(await this.#stream.readExactly(4));
    const [left, top] = [from.getUint16(0), from.getUint16(2)];
    if (left + width > screenWidth || top + height > screenHeight) throw protocolError("A part is off the screen.");
    const before = pixels.slice();
    for (let row = 0; row < height; row += 1) {
      const offset = ((top + row) * screenWidth + left) * 4;
      pixels.set(before.subarray(offset, offset + width * 4), ((y + row) * screenWidth + x) * 4);
    }
  }
}

/** Chooses among the server's security types; only "none" is supported. */
const negotiate = async (stream: Lookahead, minor: number): Promise<void> => {
  if (minor < 7) {
    if (toView(await stream.readExactly(4)).getUint32(0) !== NO_AUTHENTICATION) throw passwordError();
    return;
  }
  const [count = 0] = await stream.readExactly(1);
  if (count === 0) throw new WireError("refused", "The VNC server refuses.");
  if (!(await stream.readExactly(count)).includes(NO_AUTHENTICATION)) throw passwordError();
  await stream.write(Uint8Array.of(NO_AUTHENTICATION));
  if (minor >= 8 && toView(await stream.readExactly(4)).getUint32(0) !== 0) throw passwordError();
};

const createScreen = (width: number, height: number): Screen => {
  if (width === 0 || height === 0 || width * height > MAX_PIXELS) throw protocolError("The screen has no size.");
  return { width, height, pixels: new Uint8Array(width * height * 4) };
};

const toView = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const requireAtMost = (length: number, limit: number): number => {
  if (length > limit) throw protocolError("The VNC server sent too much data.");
  return length;
};

const protocolError = (message: string): WireError => new WireError("protocol", message);
const passwordError = (): WireError => new WireError("refused", "The VNC server requires a password.");
