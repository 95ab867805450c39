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
  readonly rowHeightPx: number;
  /** All rows have the same height and are not measured. */
  readonly hasFixedHeight?: boolean;
  /** The scrolling element; defaults to the window. */
  readonly scroller?: RefObject<HTMLElement | null>;
  readonly getKey?: (index: number) => string | number;
  /** `isPassing`: the list is scrolling, so the row may disappear in the next frame. It is rendered again when scrolling stops. */
  readonly renderRow: (index: number, isPassing: boolean) => ComponentChildren;
  readonly class?: string;
  /** Row to scroll into view, such as a search result. */
  readonly shownIndex?: number;
  /** Starts at the end, which is rendered immediately with an estimated screen height. */
  readonly startsAtEnd?: boolean;
  /** Renders no rows beyond the edges, because the whole content can change in one step, as with a filter. */
  readonly rendersVisibleOnly?: boolean;
  /**
   * New rows reuse the elements of removed ones. Only for rows of one height without internal state; stateful parts need a key within the
   * row.
   */
  readonly recyclesRows?: boolean;
  /** ARIA role of the box around the rows. */
  readonly role?: "rowgroup" | "presentation";
};

/** Number of extra rows rendered beyond the edges. */
const OVERSCAN = 12;
const VISIBLE_ONLY_OVERSCAN = 2;

/** True if the focus or a text selection is inside: these rows keep their elements. */
const hasFocusOrSelection = (box: HTMLElement | null): boolean => {
  const selection = getSelection();
  const selectedNode = selection?.isCollapsed === false ? selection.anchorNode : null;
  return box !== null && [document.activeElement, selectedNode].some((one) => one !== null && box.contains(one));
};

export const VirtualList = ({
  count,
  rowHeightPx,
  hasFixedHeight,
  scroller,
  getKey,
  renderRow,
  class: name,
  shownIndex,
  startsAtEnd,
  rendersVisibleOnly,
  recyclesRows,
  role,
}: VirtualListProps) => {
  const box = useRef<HTMLDivElement>(null);
  const redrawCount = useSignal(0);
  const virtualizer = useMemo(() => new Virtualizer<never, HTMLElement>({} as never), []);
  // A stable function: a new one would remeasure every row on each scroll event.
  const measure = useRef((element: HTMLElement | null) => virtualizer.measureElement(element as never)).current;
  const options = {
    count,
    estimateSize: () => rowHeightPx,
    overscan: rendersVisibleOnly ? VISIBLE_ONLY_OVERSCAN : OVERSCAN,
    scrollMargin: scroller ? 0 : (box.current?.offsetTop ?? 0),
    onChange: () => {
      redrawCount.value += 1;
    },
    // The library calls this for every row, which is unnecessary if all have the same height.
    ...(getKey && !hasFixedHeight ? { getItemKey: getKey } : {}),
  };
  const scrollOptions = scroller
    ? {
        getScrollElement: () => scroller.current,
        observeElementRect,
        observeElementOffset,
        scrollToFn: elementScroll,
        ...(startsAtEnd
          ? {
              initialOffset: () => Math.max(0, count * rowHeightPx - innerHeight / 2),
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
  virtualizer.setOptions({ ...options, ...scrollOptions } as never);
  useLayoutEffect(() => (virtualizer as unknown as { _didMount(): () => void })._didMount(), []);
  useLayoutEffect(() => (virtualizer as unknown as { _willUpdate(): void })._willUpdate());
  useLayoutEffect(() => {
    if (shownIndex !== undefined && shownIndex >= 0) virtualizer.scrollToIndex(shownIndex, { align: "center" });
  }, [shownIndex]);
  // Subscribes, so that a change of the window redraws.
  void redrawCount.value;
  const items = virtualizer.getVirtualItems();
  const slots = useMemo(createRowSlots, []);
  const keys = items.map((item) => (hasFixedHeight && getKey ? getKey(item.index) : item.key)) as (string | number)[];
  const canReuse = recyclesRows && hasFixedHeight;
  const rowKeys = canReuse ? slots.assign(keys, !hasFocusOrSelection(box.current)) : keys;
  const renderedRows = items.map((item, index) => ({ item, key: rowKeys[index] as string | number }));
  // While the list scrolls, rows keep their position in the document. Afterwards, they are sorted for the keyboard and screen readers.
  if (canReuse && (virtualizer.isScrolling || rendersVisibleOnly))
    renderedRows.sort((a, b) => Number(a.key) - Number(b.key));
  const margin = scroller ? 0 : (box.current?.offsetTop ?? 0);
  return (
    <div
      ref={box}
      class={["virtual", (virtualizer.isScrolling || rendersVisibleOnly) && "passing", name].filter(Boolean).join(" ")}
      role={role}
      style={{ blockSize: `${virtualizer.getTotalSize()}px` }}
    >
      {renderedRows.map(({ item, key }) => (
        <div
          key={key}
          class={canReuse ? "virtual-row recycled" : "virtual-row"}
          role={role === "rowgroup" ? "presentation" : undefined}
          data-index={canReuse ? undefined : item.index}
          ref={hasFixedHeight ? undefined : measure}
          style={{ transform: `translateY(${item.start - margin}px)` }}
        >
          {renderRow(item.index, virtualizer.isScrolling)}
        </div>
      ))}
    </div>
  );
};
