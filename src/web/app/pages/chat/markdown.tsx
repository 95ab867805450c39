// Renders Markdown as elements, never as HTML: tokens become vnodes, and HTML in a text is shown literally.
import { signal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { memo } from "preact/compat";
import { useContext, useMemo } from "preact/hooks";
import { loadCode } from "../../data/load-code.ts";
import type { BlockParser, Token, Tokens } from "./blocks.ts";
import { Code } from "./code.tsx";
import "./styles.ts";

/** Undefined until the lexer is loaded. */
const blockParser = signal<(new () => BlockParser) | undefined>(undefined);
let isLoading = false;

const loadParser = (): void => {
  if (isLoading) return;
  isLoading = true;
  loadCode(() => import("./blocks.ts")).then(
    (module) => {
      blockParser.value = module.BlockParser;
    },
    () => {
      // Without the lexer, texts are shown unformatted. The next text loads it again.
      isLoading = false;
    },
  );
};

// Loaded in parallel with the first messages.
loadParser();

/** Options for a documentation page: its headings can be linked to, and its links can lead within the app. */
export type DocumentOptions = {
  /** The ID of each heading, in order. */
  readonly ids: readonly string[];
  /** Returns the target of a link, or undefined to show only its text. */
  readonly resolveLink: (href: string) => string | undefined;
};

const DocumentContext = createContext<DocumentOptions | undefined>(undefined);

type MarkdownProps = {
  readonly text: string;
  /** The text is still growing, so its last block is not highlighted yet. */
  readonly isLive?: boolean;
  readonly document?: DocumentOptions;
};

export const Markdown = ({ text, isLive = false, document }: MarkdownProps) => {
  const Parser = blockParser.value;
  const parser = useMemo(() => Parser && new Parser(), [Parser]);
  if (!parser) {
    loadParser();
    return <p class="pre">{text}</p>;
  }
  const tokens = parser.parse(text);
  let headingIndex = 0;
  const elements = tokens.map((token, index) =>
    document && token.type === "heading" ? (
      <Heading key={index} token={token} id={document.ids[headingIndex++] ?? ""} />
    ) : (
      <Block key={index} token={token} isLive={isLive && index === tokens.length - 1} />
    ),
  );
  return document ? <DocumentContext.Provider value={document}>{elements}</DocumentContext.Provider> : <>{elements}</>;
};

/** On documentation pages, heading levels are kept as they are. */
const Heading = ({ token, id }: { token: Token; id: string }) => {
  const text = renderInline((token as Tokens.Heading).tokens);
  const { depth } = token as Tokens.Heading;
  if (depth <= 2) return <h2 id={id}>{text}</h2>;
  return depth === 3 ? <h3 id={id}>{text}</h3> : <h4 id={id}>{text}</h4>;
};

const Block = memo(({ token, isLive }: { token: Token; isLive: boolean }) => renderBlock(token, isLive));

const renderBlock = (token: Token, isLive = false): ComponentChildren => {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return <h3 class={`h${token.depth}`}>{renderInline(token.tokens)}</h3>;
    case "paragraph":
      return <p>{renderInline(token.tokens)}</p>;
    case "code":
      return <Code text={token.text} language={token.lang ?? ""} isLive={isLive} />;
    case "list":
      return <List list={token as Tokens.List} />;
    case "blockquote":
      return <blockquote>{(token.tokens ?? []).map((one) => renderBlock(one))}</blockquote>;
    case "hr":
      return <hr />;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "text":
      return token.tokens ? renderInline(token.tokens) : decodeReferences(token.text);
    default:
      return <p>{token.raw}</p>;
  }
};

const List = ({ list }: { list: Tokens.List }) => {
  const items = list.items.map((item, index) => (
    <li key={index}>
      {item.task && <span class="mono">{item.checked ? "[x] " : "[ ] "}</span>}
      {item.tokens.map((one) => (one.type === "checkbox" ? null : renderBlock(one)))}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
};

const Table = ({ table }: { table: Tokens.Table }) => (
  <div class="scroll" tabIndex={0} role="group" aria-label="Table">
    <table class="table">
      <thead>
        <tr>
          {table.header.map(({ tokens }, index) => (
            <th key={index}>{renderInline(tokens)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {table.rows.map((row, index) => (
          <tr key={index}>
            {row.map(({ tokens, align }, column) => (
              <td key={column} class={align === "right" ? "r" : undefined}>
                {renderInline(tokens)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const renderInline = (tokens: readonly Token[] = []): ComponentChildren =>
  tokens.map((token, index) => renderSpan(token, index));

const renderSpan = (token: Token, key: number): ComponentChildren => {
  switch (token.type) {
    case "strong":
      return <strong key={key}>{renderInline(token.tokens)}</strong>;
    case "em":
      return <em key={key}>{renderInline(token.tokens)}</em>;
    case "del":
      return <s key={key}>{renderInline(token.tokens)}</s>;
    case "codespan":
      return <code key={key}>{token.text}</code>;
    case "br":
      return <br key={key} />;
    case "link":
      return <Link key={key} link={token as Tokens.Link} />;
    // Images from other hosts are not loaded: they are shown as links.
    case "image":
      return <Link key={key} link={{ ...token, tokens: [] } as unknown as Tokens.Link} />;
    case "text":
      return token.tokens ? renderInline(token.tokens) : decodeReferences(token.text);
    case "escape":
      return token.text;
    default:
      return token.raw;
  }
};

const isSafeAddress = (address: string): boolean => /^(https?|mailto):/i.test(address);

const Link = ({ link }: { link: Tokens.Link }) => {
  const text = link.tokens.length > 0 ? renderInline(link.tokens) : link.text || link.href;
  const target = useContext(DocumentContext)?.resolveLink(link.href);
  if (target?.startsWith("/") || target?.startsWith("#")) return <a href={target}>{text}</a>;
  if (!isSafeAddress(link.href)) return <>{text}</>;
  return (
    <a href={link.href} target="_blank" rel="noreferrer noopener" title={link.href}>
      {text}
    </a>
  );
};

const NAMED_REFERENCES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  rarr: "→",
  larr: "←",
  times: "×",
};

/** Decodes character references; there is no HTML parser here that would. */
const decodeReferences = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi, (reference, decimal, hex, name) => {
    const code = decimal ? Number(decimal) : hex ? Number.parseInt(hex, 16) : 0;
    if (code > 0 && code <= 0x10ffff) return String.fromCodePoint(code);
    return NAMED_REFERENCES[name] ?? reference;
  });
