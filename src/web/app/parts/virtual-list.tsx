// A window over a long list: only the rows one can see are in the page, and the page scrolls as if all were. Rows keep their element
// while they are in view.
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
  /** It is opened at its end, which is drawn at once: a screen's height of it before the real one is known. */
  readonly fromEnd?: boolean;
  /** Everything is another with each change, as while one types a filter: only what one sees is drawn. */
  readonly narrow?: boolean;
  /** Role of the box around the rows, such as rowgroup. */
  readonly role?: "rowgroup" | "presentation";
};

/** Rows beyond the edges, for those who scroll. */
const OVERSCAN = 12;
const NARROW = 2;

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
  role,
}: VirtualListProps) => {
  const box = useRef<HTMLDivElement>(null);
  const drawn = useSignal(0);
  const list = useMemo(() => new Virtualizer<never, HTMLElement>({} as never), []);
  // One function for all rows and drawings: a new one would have each row measured anew with every step of the wheel.
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
  // Read, so that a change of the window draws anew.
  void drawn.value;
  const items = list.getVirtualItems();
  const margin = scroller ? 0 : (box.current?.offsetTop ?? 0);
  return (
    <div
      ref={box}
      class={["virtual", name].filter(Boolean).join(" ")}
      role={role}
      style={{ blockSize: `${list.getTotalSize()}px` }}
    >
      {items.map((item) => (
        <div
          key={fixed && keyOf ? keyOf(item.index) : item.key}
          class="virtual-row"
          role={role === "rowgroup" ? "presentation" : undefined}
          data-index={item.index}
          ref={fixed ? undefined : measure}
          style={{ transform: `translateY(${item.start - margin}px)` }}
        >
          {row(item.index, list.isScrolling)}
        </div>
      ))}
    </div>
  );
};
