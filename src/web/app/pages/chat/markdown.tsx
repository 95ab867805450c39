// Renders Markdown as elements, never as HTML: tokens become vnodes, and HTML in a text is shown literally.
import { signal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { memo } from "preact/compat";
import { useContext, useMemo } from "preact/hooks";
import { loadCode } from "../../data/load-code.ts";
import type { Blocks, Token, Tokens } from "./blocks.ts";
import { Code } from "./code.tsx";
import "./styles.ts";

/** Undefined until the lexer is loaded. */
const reader = signal<(new () => Blocks) | undefined>(undefined);
let isLoading = false;

const load = (): void => {
  if (isLoading) return;
  isLoading = true;
  loadCode(() => import("./blocks.ts")).then(
    (module) => {
      reader.value = module.Blocks;
    },
    () => {
      // Without the lexer, texts are shown unformatted. The next text loads it again.
      isLoading = false;
    },
  );
};

// Loaded in parallel with the first messages.
load();

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
  const Reader = reader.value;
  const blocks = useMemo(() => Reader && new Reader(), [Reader]);
  if (!blocks) {
    load();
    return <p class="pre">{text}</p>;
  }
  const tokens = blocks.read(text);
  let headings = 0;
  const drawn = tokens.map((token, at) =>
    document && token.type === "heading" ? (
      <Heading key={at} token={token} id={document.ids[headings++] ?? ""} />
    ) : (
      <Block key={at} token={token} isLive={isLive && at === tokens.length - 1} />
    ),
  );
  return document ? <DocumentContext.Provider value={document}>{drawn}</DocumentContext.Provider> : <>{drawn}</>;
};

/** On documentation pages, heading levels are kept as they are. */
const Heading = ({ token, id }: { token: Token; id: string }) => {
  const words = renderInline((token as Tokens.Heading).tokens);
  const { depth } = token as Tokens.Heading;
  if (depth <= 2) return <h2 id={id}>{words}</h2>;
  return depth === 3 ? <h3 id={id}>{words}</h3> : <h4 id={id}>{words}</h4>;
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
  const items = list.items.map((item, at) => (
    <li key={at}>
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
          {table.header.map(({ tokens }, at) => (
            <th key={at}>{renderInline(tokens)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {table.rows.map((row, at) => (
          <tr key={at}>
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
  tokens.map((token, at) => renderSpan(token, at));

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

const isSafe = (address: string): boolean => /^(https?|mailto):/i.test(address);

const Link = ({ link }: { link: Tokens.Link }) => {
  const words = link.tokens.length > 0 ? renderInline(link.tokens) : link.text || link.href;
  const target = useContext(DocumentContext)?.resolveLink(link.href);
  if (target?.startsWith("/") || target?.startsWith("#")) return <a href={target}>{words}</a>;
  if (!isSafe(link.href)) return <>{words}</>;
  return (
    <a href={link.href} target="_blank" rel="noreferrer noopener" title={link.href}>
      {words}
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
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name) => {
    const code = decimal ? Number(decimal) : hex ? Number.parseInt(hex, 16) : 0;
    if (code > 0 && code <= 0x10ffff) return String.fromCodePoint(code);
    return NAMED_REFERENCES[name] ?? whole;
  });
