// Splits long terminal input, such as a paste, into pieces that fit into messages: the socket limits messages to 1 MiB. Pure.

/** Small enough to show progress on a slow connection. */
const PIECE_LENGTH = 16 * 1024;

/** Returns the pieces of the text. No piece splits a character. */
export const splitPieces = (text: string): string[] => {
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE_LENGTH, text.length);
    const last = text.charCodeAt(to - 1);
    if (to < text.length && last >= 0xd800 && last <= 0xdbff) to -= 1;
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
};
