// Creates screenshots for a model: scales large screens down and encodes them as PNG (rule DT-4).
import { promisify } from "node:util";
import { deflate } from "node:zlib";
import type { Screen } from "./rfb.ts";

/** Maximum length of the longer side; models do not use more detail. */
const MAX_SIDE = 1_280;

const compress = promisify(deflate) as (bytes: Uint8Array, options: { level: number }) => Promise<Buffer>;

/** Returns the scale from screen to picture; at most 1. */
export const computeScale = ({ width, height }: { width: number; height: number }): number =>
  Math.min(1, MAX_SIDE / Math.max(width, height));

export type Picture = { readonly width: number; readonly height: number; readonly png: Uint8Array };

export const createPicture = async (screen: Screen): Promise<Picture> => {
  const scale = computeScale(screen);
  const width = Math.max(1, Math.round(screen.width * scale));
  const height = Math.max(1, Math.round(screen.height * scale));
  return { width, height, png: await encodePng(width, height, encodeRows(screen, width, height)) };
};

/**
 * Returns the rows of the picture. Each row starts with a zero (no filter), followed by three bytes per pixel: the mean of the screen
 * pixels that it covers.
 */
const encodeRows = (screen: Screen, width: number, height: number): Uint8Array => {
  const rows = new Uint8Array(height * (1 + width * 3));
  let offset = 0;
  for (let y = 0; y < height; y += 1) {
    offset += 1;
    const top = Math.floor((y * screen.height) / height);
    const bottom = Math.max(top + 1, Math.floor(((y + 1) * screen.height) / height));
    for (let x = 0; x < width; x += 1) {
      const left = Math.floor((x * screen.width) / width);
      const right = Math.max(left + 1, Math.floor(((x + 1) * screen.width) / width));
      let [red, green, blue] = [0, 0, 0];
      for (let row = top; row < bottom; row += 1) {
        for (let column = left; column < right; column += 1) {
          const pixel = (row * screen.width + column) * 4;
          blue += screen.pixels[pixel] as number;
          green += screen.pixels[pixel + 1] as number;
          red += screen.pixels[pixel + 2] as number;
        }
      }
      const count = (bottom - top) * (right - left);
      rows[offset] = red / count;
      rows[offset + 1] = green / count;
      rows[offset + 2] = blue / count;
      offset += 3;
    }
  }
  return rows;
};

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

const encodePng = async (width: number, height: number, rows: Uint8Array): Promise<Uint8Array> => {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  // Eight bits each for red, green and blue.
  header[8] = 8;
  header[9] = 2;
  const data = await compress(rows, { level: 6 });
  return Buffer.concat([
    SIGNATURE,
    encodeChunk("IHDR", header),
    encodeChunk("IDAT", data),
    encodeChunk("IEND", new Uint8Array(0)),
  ]);
};

const encodeChunk = (name: string, data: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(12 + data.byteLength);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.byteLength);
  bytes.set(new TextEncoder().encode(name), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.byteLength, Bun.hash.crc32(bytes.subarray(4, 8 + data.byteLength)));
  return bytes;
};
