// Splits long terminal input, such as a paste, into pieces that fit into messages: the socket limits messages to 1 MiB. Pure.

/** Small enough to show progress on a slow connection. */
const PIECE_LENGTH = 16 * 1024;

/** Returns the pieces of the text. No piece splits a character. */
export const splitInput = (text: string): string[] => {
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PIECE_LENGTH, text.length);
    const lastCode = text.charCodeAt(end - 1);
    if (end < text.length && lastCode >= 0xd800 && lastCode <= 0xdbff) end -= 1;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
};
