// Renders the inline Markdown of a description as elements, never as HTML.
import type { ComponentChildren } from "preact";
import { type Piece, readInline } from "./inline-reader.ts";

/** `plainLinks`: the text is inside a link or label, so links are shown as text. */
export const Inline = ({ text, plainLinks = false }: { text: string; plainLinks?: boolean }) => (
  <>{renderPieces(readInline(text), !plainLinks)}</>
);

const renderPieces = (pieces: readonly Piece[], mayLink: boolean): ComponentChildren =>
  pieces.map((piece, at) => renderPiece(piece, at, mayLink));

const renderPiece = (piece: Piece, key: number, mayLink: boolean): ComponentChildren => {
  if (typeof piece === "string") return renderParagraphs(piece);
  if (piece.kind === "code") return <code key={key}>{piece.text}</code>;
  if (piece.kind === "link") {
    if (!mayLink) return renderPieces(piece.inside, false);
    return (
      <a key={key} href={piece.href} target="_blank" rel="noreferrer noopener">
        {renderPieces(piece.inside, false)}
      </a>
    );
  }
  const { kind: Tag } = piece;
  return <Tag key={key}>{renderPieces(piece.inside, mayLink)}</Tag>;
};

/** Paragraphs are separated by an empty line. */
const renderParagraphs = (text: string): ComponentChildren =>
  text
    .split(/\n\s*\n/)
    .flatMap((part, at) => (at === 0 ? [part] : [<br key={`b${at}`} />, <br key={`c${at}`} />, part]));
