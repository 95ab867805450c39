// Long input to a terminal, such as a paste, in pieces that fit into messages: a socket takes no message above 1 MiB. Pure.

/** Small enough that a slow line is seen to move. */
const PIECE = 16 * 1024;

/** Returns the text in pieces; none begins or ends inside a character. */
export const splitPieces = (text: string): string[] => {
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE, text.length);
    const last = text.charCodeAt(to - 1);
    if (to < text.length && last >= 0xd800 && last <= 0xdbff) to -= 1;
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
};
