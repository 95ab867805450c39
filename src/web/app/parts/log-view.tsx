// A view of a log of any length: only visible lines are in the page. Has colors, search, copy and download, and follows the end while the
// user is there.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { LogFeed, LogLine } from "../data/logs.ts";
import { parsePieces, stripControls } from "./ansi.ts";
import { copy } from "./as-command.tsx";
import { IconButton } from "./button.tsx";
import { formatCount } from "./format-time.ts";
import { sets, textInto } from "./handlers.ts";
import { VirtualList } from "./virtual-list/virtual-list.tsx";

type LogViewProps = {
  readonly title: string;
  readonly feed: LogFeed;
  /** The logs to choose from, such as build and the names of agents. */
  readonly sources: readonly string[];
  /** File name of the download. */
  readonly file: string;
  /** Shown if there are no lines. */
  readonly empty: string;
};

const LINE_PX = 20;
/** Maximum distance from the end at which the view follows new lines. */
const FOLLOW_DISTANCE_PX = 24;

const formatClock = (at: string): string => {
  const time = new Date(at);
  const padTwo = (value: number): string => String(value).padStart(2, "0");
  return `${padTwo(time.getHours())}:${padTwo(time.getMinutes())}:${padTwo(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
};

const formatLines = (lines: readonly LogLine[]): string =>
  lines.map(({ at, source, text }) => `${at} [${source}] ${stripControls(text)}\n`).join("");

const Highlighted = ({ text, words }: { text: string; words: string }) => {
  const at = words === "" ? -1 : text.toLowerCase().indexOf(words);
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + words.length)}</mark>
      {text.slice(at + words.length)}
    </>
  );
};

const Line = ({ line, number, words, isHit }: { line: LogLine; number: number; words: string; isHit: boolean }) => (
  <div class={["l", isHit && "hit", line.isBad && "err", line.isWarning && "warn"].filter(Boolean).join(" ")}>
    <span class="no">{number}</span>
    <time dateTime={line.at}>{formatClock(line.at)}</time>
    <span>
      {parsePieces(line.text).map((piece, at) =>
        piece.class ? (
          <span key={at} class={piece.class}>
            <Highlighted text={piece.text} words={words} />
          </span>
        ) : (
          <Highlighted key={at} text={piece.text} words={words} />
        ),
      )}
    </span>
  </div>
);

export const LogView = ({ title, feed, sources, file, empty }: LogViewProps) => {
  const scroller = useRef<HTMLDivElement>(null);
  const source = useSignal<string | undefined>(undefined);
  const words = useSignal("");
  const searching = useSignal(false);
  const hit = useSignal(0);
  const atEnd = useRef(true);
  const lines = useComputed((): readonly LogLine[] => {
    void feed.version.value;
    return source.value === undefined ? feed.lines.slice() : feed.lines.filter((line) => line.source === source.value);
  });
  const hits = useComputed(() => {
    const wanted = words.value.toLowerCase();
    if (wanted === "") return [];
    return lines.value.flatMap(({ text }, at) => (stripControls(text).toLowerCase().includes(wanted) ? [at] : []));
  });
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && atEnd.current && words.value === "") box.scrollTop = box.scrollHeight;
  }, [lines.value.length]);
  useEffect(sets(hit, 0), [words.value]);
  const currentHit = hits.value.length > 0 ? hits.value[hit.value % hits.value.length] : undefined;
  const step = (by: number): void => {
    const count = hits.value.length;
    if (count > 0) hit.value = (hit.value + by + count) % count;
  };
  const download = (): void => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([formatLines(lines.value)], { type: "text/plain" }));
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span class="dim small desk num">{`${formatCount(lines.value.length)} ${lines.value.length === 1 ? "line" : "lines"}`}</span>
        <span class="push line">
          {sources.length > 1 && (
            <span class="group desk" role="group" aria-label="Log source">
              {[undefined, ...sources].map((one) => (
                <button
                  key={one ?? ""}
                  type="button"
                  class="btn sm"
                  aria-pressed={source.value === one}
                  onClick={sets(source, one)}
                >
                  {one ?? "All"}
                </button>
              ))}
            </span>
          )}
          <IconButton
            icon="search"
            small
            label="Search in log"
            pressed={searching.value}
            onPress={() => {
              searching.value = !searching.value;
              words.value = "";
            }}
          />
          <IconButton icon="copy" small label="Copy log" onPress={() => copy(formatLines(lines.value))} />
          <IconButton icon="save" small label="Download log" onPress={download} />
        </span>
      </header>
      {searching.value && (
        <div class="find line">
          <input
            class="input"
            type="search"
            aria-label="Search in log"
            placeholder="Text to find"
            autoFocus
            value={words.value}
            onInput={textInto(words)}
            onKeyDown={(event) => {
              if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
              if (event.key !== "Escape") return;
              searching.value = false;
              words.value = "";
            }}
          />
          <span class="dim small num" role="status">
            {words.value === ""
              ? ""
              : hits.value.length === 0
                ? "none"
                : `${(hit.value % hits.value.length) + 1} of ${hits.value.length}`}
          </span>
          <IconButton icon="up" small label="Previous match" onPress={() => step(-1)} />
          <IconButton icon="down" small label="Next match" onPress={() => step(1)} />
        </div>
      )}
      <div
        ref={scroller}
        class="log"
        role="region"
        aria-label={`${title}, lines`}
        tabIndex={0}
        onScroll={(event) => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          atEnd.current = scrollHeight - scrollTop - clientHeight < FOLLOW_DISTANCE_PX;
        }}
      >
        {lines.value.length === 0 ? (
          <p class="pad dim">{empty}</p>
        ) : (
          <VirtualList
            count={lines.value.length}
            size={LINE_PX}
            fixed
            fromEnd
            scroller={scroller}
            shown={currentHit}
            row={(at) => {
              const line = lines.value[at];
              return (
                line && (
                  <Line
                    line={line}
                    number={at + 1 + feed.dropped}
                    words={words.value.toLowerCase()}
                    isHit={at === currentHit}
                  />
                )
              );
            }}
          />
        )}
      </div>
    </section>
  );
};
