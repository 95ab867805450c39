// A virtual list: only visible rows are in the page, and the page scrolls as if all were. Rows keep their element while they are in view.
// Where allowed, new rows reuse the elements of removed ones.
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
import { createRowSlots } from "./row-slots.ts";

type VirtualListProps = {
  readonly count: number;
  /** Estimated height of a row in pixels, before it is measured. */
  readonly size: number;
  /** All rows have the same height and are not measured. */
  readonly fixed?: boolean;
  /** The scrolling element; defaults to the window. */
  readonly scroller?: RefObject<HTMLElement | null>;
  readonly keyOf?: (index: number) => string | number;
  /** `isPassing`: the list is scrolling, so the row may disappear in the next frame. It is rendered again when scrolling stops. */
  readonly row: (index: number, isPassing: boolean) => ComponentChildren;
  readonly class?: string;
  /** Row to scroll into view, such as a search result. */
  readonly shown?: number;
  /** Starts at the end, which is rendered immediately with an estimated screen height. */
  readonly fromEnd?: boolean;
  /** The whole content can change in one step, as with a filter, so only visible rows are rendered. */
  readonly narrow?: boolean;
  /**
   * New rows reuse the elements of removed ones. Only for rows of one height without internal state; stateful parts need a key within the
   * row.
   */
  readonly recycled?: boolean;
  /** ARIA role of the box around the rows. */
  readonly role?: "rowgroup" | "presentation";
};

/** Number of extra rows rendered beyond the edges. */
const OVERSCAN = 12;
const NARROW = 2;

/** True if the focus or a text selection is inside: these rows keep their elements. */
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
  // A stable function: a new one would remeasure every row on each scroll event.
  const measure = useRef((element: HTMLElement | null) => list.measureElement(element as never)).current;
  const options = {
    count,
    estimateSize: () => size,
    overscan: narrow ? NARROW : OVERSCAN,
    scrollMargin: scroller ? 0 : (box.current?.offsetTop ?? 0),
    onChange: () => {
      drawn.value += 1;
    },
    // The library calls this for every row, which is unnecessary if all have the same height.
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
  // Subscribes, so that a change of the window redraws.
  void drawn.value;
  const items = list.getVirtualItems();
  const slots = useMemo(createRowSlots, []);
  const keys = items.map((item) => (fixed && keyOf ? keyOf(item.index) : item.key)) as (string | number)[];
  const mayReuse = recycled && fixed;
  const slotOf = mayReuse ? slots.assign(keys, !isHeld(box.current)) : keys;
  const drawnRows = items.map((item, at) => ({ item, key: slotOf[at] as string | number }));
  // While rows change, they keep their document position. At rest, they are sorted for the keyboard and screen readers.
  if (mayReuse && (list.isScrolling || narrow)) drawnRows.sort((a, b) => Number(a.key) - Number(b.key));
  const margin = scroller ? 0 : (box.current?.offsetTop ?? 0);
  return (
    <div
      ref={box}
      class={["virtual", (list.isScrolling || narrow) && "passing", name].filter(Boolean).join(" ")}
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
