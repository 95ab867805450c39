// Splits a stream into content-defined chunks: an insertion or removal changes only the chunks around it, so that the next backup stores only these.

export const MAX_CHUNK_BYTES = 4 * 1024 * 1024;
const MIN_CHUNK_BYTES = 512 * 1024;
/** The window of the rolling hash in bytes, one for each of its bits. */
const WINDOW_BYTES = 32;
/** A boundary requires this many zero bits: on average one per MiB. */
const SHIFT = 32 - 20;

/** `gear` has 256 random numbers, the same for all backups that share chunks. */
export async function* cut(
  stream: AsyncIterable<Uint8Array>,
  gear: Int32Array,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const buffer = new Uint8Array(MAX_CHUNK_BYTES);
  let length = 0;
  let hash = 0;
  for await (const bytes of stream) {
    for (let from = 0; from < bytes.length; ) {
      const end = Math.min(bytes.length, from + MAX_CHUNK_BYTES - length);
      const earliest = from + MIN_CHUNK_BYTES - length;
      // No boundary before the minimum size, so hashing starts one window before it.
      let at = Math.max(from, Math.min(end, earliest - WINDOW_BYTES));
      let isCut = false;
      while (at < end && !isCut) {
        hash = ((hash << 1) + (gear[bytes[at] as number] as number)) | 0;
        at += 1;
        isCut = at >= earliest && hash >>> SHIFT === 0;
      }
      buffer.set(bytes.subarray(from, at), length);
      length += at - from;
      from = at;
      if (!isCut && length < MAX_CHUNK_BYTES) continue;
      yield buffer.slice(0, length);
      length = 0;
      hash = 0;
    }
  }
  if (length > 0) yield buffer.slice(0, length);
}
