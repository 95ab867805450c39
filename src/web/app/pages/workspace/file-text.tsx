// The content of one file, if it is text; the whole file can be downloaded.
import { formatSize } from "#base/format-size.ts";
import { useResource } from "../../data/resource.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Code } from "../chat/code.tsx";

/** Maximum number of bytes shown. */
const MAX_SHOWN_BYTES = 256 * 1024;
/** Maximum size for highlighting, which must not block. */
const MAX_HIGHLIGHTED_BYTES = 64 * 1024;

const toContentUrl = (agent: string, path: string, limit?: number): string => {
  const query = new URLSearchParams({ path, ...(limit === undefined ? {} : { limit: String(limit) }) });
  return `/api/v2/workspaceagents/${agent}/files/content?${query}`;
};

type LoadedFile = { readonly size: number; readonly text: string | undefined };

const loadFile = async (agent: string, path: string): Promise<LoadedFile> => {
  const response = await fetch(toContentUrl(agent, path, MAX_SHOWN_BYTES));
  if (!response.ok) {
    const answer = (await response.json().catch(() => ({}))) as { message?: string; detail?: string };
    throw new Error(
      [answer.message, answer.detail].filter(Boolean).join(" ") || `The server answered ${response.status}.`,
    );
  }
  const size = Number(response.headers.get("x-file-size"));
  const bytes = new Uint8Array(await response.arrayBuffer());
  // A zero byte marks a binary file. A character cut off at the end does not.
  if (bytes.includes(0)) return { size, text: undefined };
  return { size, text: new TextDecoder().decode(bytes) };
};

type FileTextProps = { readonly agent: string; readonly path: string; readonly closeHref: string };

export const FileText = ({ agent, path, closeHref }: FileTextProps) => {
  const { state, reload } = useResource(`file ${agent} ${path}`, () => loadFile(agent, path));
  const { data, error } = state.value;
  const name = path.split("/").at(-1) ?? path;
  const language = /\.(\w+)$/.exec(name)?.[1] ?? "";
  return (
    <section class="panel" aria-label={`File ${name}`}>
      <header>
        <h2 class="mono clip">{name}</h2>
        {data && <span class="dim small num">{formatSize(data.size)}</span>}
        <span class="push line">
          <a class="btn sm" href={toContentUrl(agent, path)} download={name}>
            Download
          </a>
          <ButtonLink small look="ghost" href={closeHref}>
            Close
          </ButtonLink>
        </span>
      </header>
      {error !== undefined && data === undefined ? (
        <Failed title="Can't load the file" error={error} reload={reload} />
      ) : !data ? (
        <Skeleton lines={6} />
      ) : data.text === undefined ? (
        <p class="pad mut">This is not a text file. Download it to view it.</p>
      ) : (
        <>
          <Code text={data.text} language={data.text.length > MAX_HIGHLIGHTED_BYTES ? "" : language} isLive={false} />
          {data.size > MAX_SHOWN_BYTES && <p class="pad mut">The first {formatSize(MAX_SHOWN_BYTES)} are shown.</p>}
        </>
      )}
    </section>
  );
};
