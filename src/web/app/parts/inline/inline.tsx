// Renders the inline Markdown of a description as elements, never as HTML.
import type { ComponentChildren } from "preact";
import { type Piece, readInline } from "./inline-reader.ts";

/** `plainLinks`: the text is inside a link or label, so links are shown as text. */
export const Inline = ({ text, plainLinks = false }: { text: string; plainLinks?: boolean }) => (
  <>{renderPieces(readInline(text), !plainLinks)}</>
);

const renderPieces = (pieces: readonly Piece[], canLink: boolean): ComponentChildren =>
  pieces.map((piece, index) => renderPiece(piece, index, canLink));

const renderPiece = (piece: Piece, key: number, canLink: boolean): ComponentChildren => {
  if (typeof piece === "string") return renderParagraphs(piece);
  if (piece.kind === "code") return <code key={key}>{piece.text}</code>;
  if (piece.kind === "link") {
    if (!canLink) return renderPieces(piece.content, false);
    return (
      <a key={key} href={piece.href} target="_blank" rel="noreferrer noopener">
        {renderPieces(piece.content, false)}
      </a>
    );
  }
  const { kind: Tag } = piece;
  return <Tag key={key}>{renderPieces(piece.content, canLink)}</Tag>;
};

/** Paragraphs are separated by an empty line. */
const renderParagraphs = (text: string): ComponentChildren =>
  text
    .split(/\n\s*\n/)
    .flatMap((part, index) => (index === 0 ? [part] : [<br key={`b${index}`} />, <br key={`c${index}`} />, part]));
