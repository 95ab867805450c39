// A window over a long list: only the rows one can see are in the page, and the page scrolls as if all were. Rows keep their element
// while they are in view, and where allowed, new rows reuse the elements of removed ones.
import { useSignal } from "@preact/signals";
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  observeWindowOffset,
  observeWindowRect,
  Virtualizer,
  windowScroll,
} from "@tanstack/virtual-core";
import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { rowSlots } from "./row-slots.ts";

type VirtualListProps = {
  readonly count: number;
  /** Pixels of a row before it is measured. */
  readonly size: number;
  /** Rows of one height need not be measured. */
  readonly fixed?: boolean;
  /** What scrolls; the window without it. */
  readonly scroller?: RefObject<HTMLElement | null>;
  readonly keyOf?: (index: number) => string | number;
  /** `isPassing`: the list is being scrolled, so that the row may be gone in the next frame; it is asked for again when it rests. */
  readonly row: (index: number, isPassing: boolean) => ComponentChildren;
  readonly class?: string;
  /** Row to have in view, such as a hit of a search. */
  readonly shown?: number;
  /** Starts at its end, which is drawn immediately: a screen's height of it before the real one is known. */
  readonly fromEnd?: boolean;
  /** Everything is another with each change, as while one types a filter: only what one sees is drawn. */
  readonly narrow?: boolean;
  /**
   * New rows reuse the elements of removed ones. For rows of one height without a state of their own; what has one is given a key
   * in the row.
   */
  readonly recycled?: boolean;
  /** Role of the box around the rows, such as rowgroup. */
  readonly role?: "rowgroup" | "presentation";
};

/** Rows beyond the edges, for scrolling. */
const OVERSCAN = 12;
const NARROW = 2;

/** Someone has the focus or selected words in it: these stay with their row. */
const isHeld = (box: HTMLElement | null): boolean => {
  const selection = getSelection();
  const words = selection?.isCollapsed === false ? selection.anchorNode : null;
  return box !== null && [document.activeElement, words].some((one) => one !== null && box.contains(one));
};

export const VirtualList = ({
  count,
  size,
  fixed,
  scroller,
  keyOf,
  row,
  class: name,
  shown,
  fromEnd,
  narrow,
  recycled,
  role,
}: VirtualListProps) => {
  const box = useRef<HTMLDivElement>(null);
  const drawn = useSignal(0);
  const list = useMemo(() => new Virtualizer<never, HTMLElement>({} as never), []);
  // One function for all rows and drawings: a new one would have each row measured again with every step of the wheel.
  const measure = useRef((element: HTMLElement | null) => list.measureElement(element as never)).current;
  const options = {
    count,
    estimateSize: () => size,
    overscan: narrow ? NARROW : OVERSCAN,
    scrollMargin: scroller ? 0 : (box.current?.offsetTop ?? 0),
    onChange: () => {
      drawn.value += 1;
    },
    // The library asks for the key of each row there is; where all are of one height it need not know them.
    ...(keyOf && !fixed ? { getItemKey: keyOf } : {}),
  };
  const way = scroller
    ? {
        getScrollElement: () => scroller.current,
        observeElementRect,
        observeElementOffset,
        scrollToFn: elementScroll,
        ...(fromEnd
          ? {
              initialOffset: () => Math.max(0, count * size - innerHeight / 2),
              initialRect: { width: innerWidth, height: innerHeight / 2 },
            }
          : {}),
      }
    : {
        getScrollElement: () => window,
        observeElementRect: observeWindowRect,
        observeElementOffset: observeWindowOffset,
        scrollToFn: windowScroll,
        initialOffset: () => window.scrollY,
        initialRect: { width: innerWidth, height: innerHeight },
      };
  list.setOptions({ ...options, ...way } as never);
  useLayoutEffect(() => (list as unknown as { _didMount(): () => void })._didMount(), []);
  useLayoutEffect(() => (list as unknown as { _willUpdate(): void })._willUpdate());
  useLayoutEffect(() => {
    if (shown !== undefined && shown >= 0) list.scrollToIndex(shown, { align: "center" });
  }, [shown]);
  // Read, so that a change of the window draws again.
  void drawn.value;
  const items = list.getVirtualItems();
  const slots = useMemo(rowSlots, []);
  const keys = items.map((item) => (fixed && keyOf ? keyOf(item.index) : item.key)) as (string | number)[];
  const mayReuse = recycled && fixed;
  const slotOf = mayReuse ? slots.assign(keys, !isHeld(box.current)) : keys;
  const drawnRows = items.map((item, at) => ({ item, key: slotOf[at] as string | number }));
  // While rows come and go they stay where they are in the document; at rest they stand in their order, for keys and readers of the screen.
  if (mayReuse && (list.isScrolling || narrow)) drawnRows.sort((a, b) => Number(a.key) - Number(b.key));
  const margin = scroller ? 0 : (box.current?.offsetTop ?? 0);
  return (
    <div
      ref={box}
      class={["virtual", name].filter(Boolean).join(" ")}
      role={role}
      style={{ blockSize: `${list.getTotalSize()}px` }}
    >
      {drawnRows.map(({ item, key }) => (
        <div
          key={key}
          class={mayReuse ? "virtual-row recycled" : "virtual-row"}
          role={role === "rowgroup" ? "presentation" : undefined}
          data-index={mayReuse ? undefined : item.index}
          ref={fixed ? undefined : measure}
          style={{ transform: `translateY(${item.start - margin}px)` }}
        >
          {row(item.index, list.isScrolling)}
        </div>
      ))}
    </div>
  );
};
