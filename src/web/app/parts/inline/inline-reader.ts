// Parses the inline Markdown of descriptions into pieces, never into HTML. Unknown syntax stays literal text. Pure.

type Mark = "strong" | "em" | "s";
export type Piece =
  | string
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: Mark; readonly content: readonly Piece[] }
  | { readonly kind: "link"; readonly href: string; readonly content: readonly Piece[] };

/** Longer texts are shown unformatted. */
const MAX_LENGTH = 4_000;

/** In order of precedence, each with a function that builds a piece from its groups. */
const RULES: readonly (readonly [RegExp, (groups: readonly string[]) => Piece])[] = [
  [/\\([!-/:-@[-`{-~])/y, ([text = ""]) => text],
  [/`([^`]+)`/y, ([text = ""]) => ({ kind: "code", text: text.trim() })],
  [
    /!?\[([^[\]]+)\]\(\s{0,8}<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s{1,8}"[^"]*")?\s{0,8}\)/y,
    ([text = "", href = ""]) => makeLink(href, text),
  ],
  [/<(https?:[^\s<>]+)>/y, ([href = ""]) => makeLink(href, href)],
  [/(?<!\w)(https?:\/\/[^\s<>()]*[^\s<>().,;:!?"'*_~`])/y, ([href = ""]) => makeLink(href, href)],
  [
    /\*\*\*(?=\S)([^*]*[^\s*])\*\*\*/y,
    ([text = ""]) => ({ kind: "strong", content: [{ kind: "em", content: parsePieces(text) }] }),
  ],
  [/\*\*(?=\S)((?:[^*]|\*(?!\*))*[^\s*])\*\*/y, makeMark("strong")],
  [/(?<!\w)__(?=\S)((?:[^_]|_(?!_))*[^\s_])__(?!\w)/y, makeMark("strong")],
  [/~~(?=\S)([^~]*[^\s~])~~/y, makeMark("s")],
  [/(?<!\*)\*(?=[^\s*])((?:\\.|[^*\\]|\*\*[^*]+\*\*)*(?:[^\s*\\]|\\.|\*\*[^*]+\*\*))\*(?!\*)/y, makeMark("em")],
  [/(?<!\w)_(?=[^\s_])([^_]*[^\s_])_(?!\w)/y, makeMark("em")],
];

function makeMark(kind: Mark) {
  return ([text = ""]: readonly string[]): Piece => ({ kind, content: parsePieces(text) });
}

/** Only web and mail addresses become links. */
const makeLink = (href: string, text: string): Piece =>
  /^(https?|mailto):/i.test(href) ? { kind: "link", href, content: text === href ? [text] : parsePieces(text) } : text;

const parsePieces = (text: string): readonly Piece[] => {
  const pieces: Piece[] = [];
  let plain = "";
  const add = (piece: Piece): void => {
    if (typeof piece === "string") plain += piece;
    else {
      if (plain !== "") pieces.push(plain);
      plain = "";
      pieces.push(piece);
    }
  };
  for (let index = 0; index < text.length; ) {
    const match = RULES.values()
      .map(([rule, make]) => {
        rule.lastIndex = index;
        const groups = rule.exec(text);
        return groups && { length: groups[0].length, piece: make(groups.slice(1)) };
      })
      .find((one) => one !== null);
    add(match ? match.piece : text.charAt(index));
    index += match ? match.length : 1;
  }
  if (plain !== "") pieces.push(plain);
  return pieces;
};

export const readInline = (text: string): readonly Piece[] => (text.length > MAX_LENGTH ? [text] : parsePieces(text));
