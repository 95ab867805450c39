// Parses the inline Markdown of descriptions into pieces, never into HTML. Unknown syntax stays literal text. Pure.

type Mark = "strong" | "em" | "s";
export type Piece =
  | string
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: Mark; readonly inside: readonly Piece[] }
  | { readonly kind: "link"; readonly href: string; readonly inside: readonly Piece[] };

/** Longer texts are shown unformatted. */
const MAX_LENGTH = 4_000;

/** In order of precedence, each with a function that builds a piece from its groups. */
const RULES: readonly (readonly [RegExp, (groups: readonly string[]) => Piece])[] = [
  [/\\([!-/:-@[-`{-~])/y, ([text = ""]) => text],
  [/`([^`]+)`/y, ([text = ""]) => ({ kind: "code", text: text.trim() })],
  [
    /!?\[([^[\]]+)\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\s*\)/y,
    ([text = "", href = ""]) => link(href, text),
  ],
  [/<(https?:[^\s<>]+)>/y, ([href = ""]) => link(href, href)],
  [/(?<!\w)(https?:\/\/[^\s<>()]*[^\s<>().,;:!?"'*_~`])/y, ([href = ""]) => link(href, href)],
  [
    /\*\*\*(?=\S)([^*]*[^\s*])\*\*\*/y,
    ([text = ""]) => ({ kind: "strong", inside: [{ kind: "em", inside: read(text) }] }),
  ],
  [/\*\*(?=\S)((?:[^*]|\*(?!\*))*[^\s*])\*\*/y, createMark("strong")],
  [/(?<!\w)__(?=\S)((?:[^_]|_(?!_))*[^\s_])__(?!\w)/y, createMark("strong")],
  [/~~(?=\S)([^~]*[^\s~])~~/y, createMark("s")],
  [/(?<!\*)\*(?=[^\s*])((?:\\.|[^*\\]|\*\*[^*]+\*\*)*(?:[^\s*\\]|\\.|\*\*[^*]+\*\*))\*(?!\*)/y, createMark("em")],
  [/(?<!\w)_(?=[^\s_])([^_]*[^\s_])_(?!\w)/y, createMark("em")],
];

function createMark(kind: Mark) {
  return ([text = ""]: readonly string[]): Piece => ({ kind, inside: read(text) });
}

/** Only web and mail addresses become links. */
const link = (href: string, text: string): Piece =>
  /^(https?|mailto):/i.test(href) ? { kind: "link", href, inside: text === href ? [text] : read(text) } : text;

const read = (text: string): readonly Piece[] => {
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
  for (let at = 0; at < text.length; ) {
    const found = RULES.values()
      .map(([rule, make]) => {
        rule.lastIndex = at;
        const match = rule.exec(text);
        return match && { length: match[0].length, piece: make(match.slice(1)) };
      })
      .find((one) => one !== null);
    add(found ? found.piece : text.charAt(at));
    at += found ? found.length : 1;
  }
  if (plain !== "") pieces.push(plain);
  return pieces;
};

export const readInline = (text: string): readonly Piece[] => (text.length > MAX_LENGTH ? [text] : read(text));
