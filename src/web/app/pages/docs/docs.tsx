// The documentation of this version, available offline: its pages, a search over their headings, and links that stay within the app.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { useRoute } from "preact-iso/router";
import { useResource } from "../../data/resource.ts";
import { adoptSheet } from "../../parts/adopt-sheet.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { setTo, writeTextTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { type DocumentOptions, Markdown } from "../chat/markdown.tsx";
import rules from "./docs.css" with { type: "text" };

adoptSheet(rules);

type Page = {
  readonly name: string;
  readonly title: string;
  readonly file: string;
  readonly headings: readonly { readonly id: string; readonly text: string }[];
};

/** Inserted by the build (src/web/docs.ts). */
declare const SLIPWAY_DOCS: readonly Page[];
const PAGES: readonly Page[] = SLIPWAY_DOCS;
const FIRST_PAGE = "README";

const toAddress = (name: string, id = ""): string =>
  `${name === FIRST_PAGE ? "/docs" : `/docs/${name}`}${id === "" ? "" : `#${id}`}`;

/**
 * Returns the target of a link on a page: a page here, a section of the same page, or another site. Links to files that are not part of the
 * app become plain text.
 */
const resolveLink = (href: string): string | undefined => {
  if (/^(https?|mailto):/.test(href)) return href;
  if (href.startsWith("#")) return href;
  const [path = "", id = ""] = href.split("#");
  const name = /^(?:\.\/)?([\w-]+)\.md$/.exec(path)?.[1];
  return PAGES.some((page) => page.name === name) ? toAddress(name ?? "", id) : undefined;
};

const loadPage = async (file: string): Promise<string> => {
  const response = await fetch(`/assets/${file}`);
  if (!response.ok) throw new Error("Can't load the page. Slipway may have been updated. Reload this page.");
  return response.text();
};

const MAX_RESULTS = 30;

export default function DocsPage() {
  const { params } = useRoute();
  const page = PAGES.find(({ name }) => name === (params.page ?? FIRST_PAGE));
  const search = useSignal("");
  const lowerSearch = search.value.trim().toLowerCase();
  const matches =
    lowerSearch === ""
      ? []
      : PAGES.flatMap(({ name, title, headings }) =>
          [{ id: "", text: title }, ...headings]
            .filter(({ text }) => text.toLowerCase().includes(lowerSearch))
            .map(({ id, text }) => ({ href: toAddress(name, id), text, title })),
        ).slice(0, MAX_RESULTS);
  return (
    <Frame
      title={page && page.name !== FIRST_PAGE ? page.title : "Documentation"}
      {...(page && page.name !== FIRST_PAGE ? { crumbs: [{ label: "Documentation", href: "/docs" }] } : {})}
    >
      <div class="admin">
        <nav class="subnav docs-nav" aria-label="Documentation">
          {PAGES.map(({ name, title }) => (
            <a key={name} href={toAddress(name)} aria-current={name === page?.name ? "page" : undefined}>
              {name === FIRST_PAGE ? "Contents" : title}
            </a>
          ))}
        </nav>
        <div class="page narrow">
          <div class="field">
            <label for="docs-search">Search headings</label>
            <input class="input" id="docs-search" type="search" value={search.value} onInput={writeTextTo(search)} />
          </div>
          {lowerSearch !== "" &&
            (matches.length === 0 ? (
              <p class="mut" role="status">
                No matching headings.
              </p>
            ) : (
              <ul class="panel list" aria-label="Headings found">
                {matches.map(({ href, text, title }) => (
                  <li key={href}>
                    <a class="item" href={href} onClick={setTo(search, "")}>
                      <span class="med">{text}</span>
                      <span class="sub">{title}</span>
                    </a>
                  </li>
                ))}
              </ul>
            ))}
          {page ? (
            <PageText key={page.file} page={page} />
          ) : (
            <Empty icon="search" title="Page not found">
              <ButtonLink look="primary" href="/docs">
                Contents
              </ButtonLink>
            </Empty>
          )}
        </div>
      </div>
    </Frame>
  );
}

const PageText = ({ page }: { page: Page }) => {
  const { state, reload } = useResource(`docs ${page.file}`, () => loadPage(page.file));
  const { data, error } = state.value;
  // The title is already in the header.
  const text = useMemo(() => data?.replace(/^\s*# .*\n/, "") ?? "", [data]);
  const options = useMemo((): DocumentOptions => ({ ids: page.headings.map(({ id }) => id), resolveLink }), [page]);
  // The section that the address names has just been rendered.
  useEffect(() => {
    if (text === "") return;
    const scrollToHash = (): void => {
      const id = decodeURIComponent(location.hash.slice(1));
      if (id) document.getElementById(id)?.scrollIntoView();
    };
    // Waits until the Markdown has been rendered.
    const observer = new MutationObserver(() => {
      const id = decodeURIComponent(location.hash.slice(1));
      if (id === "" || document.getElementById(id)) {
        observer.disconnect();
        scrollToHash();
      }
    });
    observer.observe(document.body, { childList: true, subtree: true });
    scrollToHash();
    return () => observer.disconnect();
  }, [text]);
  if (error && !data) return <Failed title="Can't load the page" error={error} reload={reload} />;
  if (data === undefined) return <Skeleton lines={10} />;
  return (
    <article class="prose docs">
      <Markdown text={text} document={options} />
    </article>
  );
};
