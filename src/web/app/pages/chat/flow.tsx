// The list of messages, with the newest in view. Older ones load on scroll. Messages far out of view are replaced by empty boxes of the
// same height.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { showError } from "../../shell/toasts.tsx";
import type { LiveChat } from "./live-chat.ts";
import { PAGE } from "./live-chat.ts";
import { Live, Message } from "./message.tsx";

// Detects which rows of a long conversation are near the viewport, with one observer for all of them.

/** Distance from the viewport up to which a message is rendered. */
const RENDER_MARGIN = "1200px 0px";

type NearListener = (entry: IntersectionObserverEntry) => void;

class NearObserver {
  readonly #scroller: RefObject<HTMLElement | null>;
  readonly #heard = new Map<Element, NearListener>();
  #eye: IntersectionObserver | undefined;

  constructor(scroller: RefObject<HTMLElement | null>) {
    this.#scroller = scroller;
  }

  /** Calls back when the element comes near or moves away, and once initially. Returns a function that stops. */
  observe(element: Element, hear: NearListener): () => void {
    this.#eye ??= new IntersectionObserver(
      (entries) => {
        for (const entry of entries) this.#heard.get(entry.target)?.(entry);
      },
      { root: this.#scroller.current, rootMargin: RENDER_MARGIN },
    );
    this.#heard.set(element, hear);
    this.#eye.observe(element);
    return () => {
      this.#heard.delete(element);
      this.#eye?.unobserve(element);
    };
  }

  end(): void {
    this.#eye?.disconnect();
    this.#eye = undefined;
  }
}

/** Number of messages rendered first: more than fit on a screen. The others follow after the first paint. */
const INITIAL_COUNT = 12;
/** Maximum number of messages kept while the user is at the end; older ones can be loaded again. */
const MAX_MESSAGES = 400;

export const Flow = ({
  chat,
  isOwner,
  children,
}: {
  chat: LiveChat;
  isOwner: boolean;
  children: ComponentChildren;
}) => {
  const scroller = useRef<HTMLDivElement>(null);
  const top = useRef<HTMLDivElement>(null);
  const shown = useSignal(PAGE);
  const isAway = useSignal(false);
  const all = chat.messages.value;
  const isWhole = useSignal(false);
  const known = all.slice(-shown.value).filter(({ role }) => role === "user" || role === "assistant");
  const rows = isWhole.value ? known : known.slice(-INITIAL_COUNT);
  const near = useMemo(() => new NearObserver(scroller), []);
  const hasMore = chat.hasMore.value || shown.value < all.length;
  const showMore = async (): Promise<void> => {
    if (shown.value >= chat.messages.value.length) await chat.loadOlder();
    shown.value += PAGE;
  };
  useEffect(() => {
    const end = top.current;
    if (!end || !hasMore || !isWhole.value) return;
    const eye = new IntersectionObserver(([one]) => void (one?.isIntersecting && showMore().catch(showError)), {
      root: scroller.current,
      rootMargin: "600px 0px",
    });
    eye.observe(end);
    return () => eye.disconnect();
  }, [hasMore, rows.length]);
  useEffect(() => {
    isWhole.value = true;
    return () => near.end();
  }, []);
  useEffect(() => {
    if (isAway.peek() || all.length <= MAX_MESSAGES) return;
    shown.value = PAGE;
    chat.trimMessages(MAX_MESSAGES / 2);
  }, [all.length]);
  const follow = (): void => {
    const away = (scroller.current?.scrollTop ?? 0) < -600;
    if (away !== isAway.value) isAway.value = away;
  };
  return (
    <div class="flow" ref={scroller} tabIndex={0} role="region" aria-label="Chat messages" onScroll={follow}>
      {isAway.value && (
        <div class="to-end">
          <Button small icon="down" onPress={() => scroller.current?.scrollTo({ top: 0 })}>
            Jump to latest
          </Button>
        </div>
      )}
      <ol>
        {hasMore && (
          <li>
            <div ref={top} class="dim small">
              Earlier messages
            </div>
          </li>
        )}
        {rows.map((message) => (
          <Row key={message.id} near={near}>
            <Message chat={chat} message={message} isOwner={isOwner} />
          </Row>
        ))}
        <li>
          <Live chat={chat} />
          {children}
        </li>
      </ol>
    </div>
  );
};

/** One row: rendered while near the viewport, otherwise an empty box of the same height. */
const Row = ({ near, children }: { near: NearObserver; children: ComponentChildren }) => {
  const box = useRef<HTMLLIElement>(null);
  const height = useSignal<number | undefined>(undefined);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    return near.observe(element, ({ isIntersecting, boundingClientRect }) => {
      if (isIntersecting) height.value = undefined;
      // A row that contains the focus stays rendered.
      else if (height.peek() === undefined && !element.contains(document.activeElement)) {
        height.value = boundingClientRect.height;
      }
    });
  }, []);
  return height.value === undefined ? (
    <li ref={box}>{children}</li>
  ) : (
    <li ref={box} style={{ blockSize: `${height.value}px` }} />
  );
};
