// A view of a log of any length: only visible lines are in the page. Has colors, search, copy and download, and follows the end while the
// user is there.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { LogFeed, LogLine } from "../data/logs.ts";
import { parsePieces, stripControls } from "./ansi.ts";
import { copyText } from "./as-command.tsx";
import { IconButton } from "./button.tsx";
import { formatCount } from "./format-time.ts";
import { setTo, writeTextTo } from "./handlers.ts";
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

const Highlighted = ({ text, search }: { text: string; search: string }) => {
  const start = search === "" ? -1 : text.toLowerCase().indexOf(search);
  if (start < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, start)}
      <mark>{text.slice(start, start + search.length)}</mark>
      {text.slice(start + search.length)}
    </>
  );
};

const Line = ({ line, number, search, isHit }: { line: LogLine; number: number; search: string; isHit: boolean }) => (
  <div class={["l", isHit && "hit", line.isBad && "err", line.isWarning && "warn"].filter(Boolean).join(" ")}>
    <span class="no">{number}</span>
    <time dateTime={line.at}>{formatClock(line.at)}</time>
    <span>
      {parsePieces(line.text).map((piece, index) =>
        piece.class ? (
          <span key={index} class={piece.class}>
            <Highlighted text={piece.text} search={search} />
          </span>
        ) : (
          <Highlighted key={index} text={piece.text} search={search} />
        ),
      )}
    </span>
  </div>
);

export const LogView = ({ title, feed, sources, file, empty }: LogViewProps) => {
  const scroller = useRef<HTMLDivElement>(null);
  const source = useSignal<string | undefined>(undefined);
  const search = useSignal("");
  const isSearching = useSignal(false);
  const hitIndex = useSignal(0);
  const isAtEnd = useRef(true);
  const lines = useComputed((): readonly LogLine[] => {
    void feed.version.value;
    return source.value === undefined ? feed.lines.slice() : feed.lines.filter((line) => line.source === source.value);
  });
  const hitLines = useComputed(() => {
    const lowerSearch = search.value.toLowerCase();
    if (lowerSearch === "") return [];
    return lines.value.flatMap(({ text }, index) =>
      stripControls(text).toLowerCase().includes(lowerSearch) ? [index] : [],
    );
  });
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && isAtEnd.current && search.value === "") box.scrollTop = box.scrollHeight;
  }, [lines.value.length]);
  useEffect(setTo(hitIndex, 0), [search.value]);
  const currentHitLine = hitLines.value.length > 0 ? hitLines.value[hitIndex.value % hitLines.value.length] : undefined;
  const moveToHit = (by: number): void => {
    const count = hitLines.value.length;
    if (count > 0) hitIndex.value = (hitIndex.value + by + count) % count;
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
                  onClick={setTo(source, one)}
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
            pressed={isSearching.value}
            onPress={() => {
              isSearching.value = !isSearching.value;
              search.value = "";
            }}
          />
          <IconButton icon="copy" small label="Copy log" onPress={() => copyText(formatLines(lines.value))} />
          <IconButton icon="save" small label="Download log" onPress={download} />
        </span>
      </header>
      {isSearching.value && (
        <div class="find line">
          <input
            class="input"
            type="search"
            aria-label="Search in log"
            placeholder="Text to find"
            autoFocus
            value={search.value}
            onInput={writeTextTo(search)}
            onKeyDown={(event) => {
              if (event.key === "Enter") moveToHit(event.shiftKey ? -1 : 1);
              if (event.key !== "Escape") return;
              isSearching.value = false;
              search.value = "";
            }}
          />
          <span class="dim small num" role="status">
            {search.value === ""
              ? ""
              : hitLines.value.length === 0
                ? "none"
                : `${(hitIndex.value % hitLines.value.length) + 1} of ${hitLines.value.length}`}
          </span>
          <IconButton icon="up" small label="Previous match" onPress={() => moveToHit(-1)} />
          <IconButton icon="down" small label="Next match" onPress={() => moveToHit(1)} />
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
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < FOLLOW_DISTANCE_PX;
        }}
      >
        {lines.value.length === 0 ? (
          <p class="pad dim">{empty}</p>
        ) : (
          <VirtualList
            count={lines.value.length}
            rowHeightPx={LINE_PX}
            hasFixedHeight
            startsAtEnd
            scroller={scroller}
            shownIndex={currentHitLine}
            renderRow={(index) => {
              const line = lines.value[index];
              return (
                line && (
                  <Line
                    line={line}
                    number={index + 1 + feed.droppedCount}
                    search={search.value.toLowerCase()}
                    isHit={index === currentHitLine}
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
