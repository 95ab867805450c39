// The list of messages, with the newest in view. Older ones load on scroll. Messages far out of view are replaced by empty boxes of the
// same height.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { showError } from "../../shell/toasts.tsx";
import type { LiveChat } from "./live-chat.ts";
import { PAGE_SIZE } from "./live-chat.ts";
import { LiveAnswer, Message } from "./message.tsx";

// Detects which rows of a long conversation are near the viewport, with one observer for all of them.

/** Distance from the viewport up to which a message is rendered. */
const RENDER_MARGIN = "1200px 0px";

type NearListener = (entry: IntersectionObserverEntry) => void;

class NearObserver {
  readonly #scroller: RefObject<HTMLElement | null>;
  readonly #listeners = new Map<Element, NearListener>();
  #observer: IntersectionObserver | undefined;

  constructor(scroller: RefObject<HTMLElement | null>) {
    this.#scroller = scroller;
  }

  /** Calls back when the element enters or leaves the area around the viewport, and once initially. Returns a function that stops. */
  observe(element: Element, listener: NearListener): () => void {
    this.#observer ??= new IntersectionObserver(
      (entries) => {
        for (const entry of entries) this.#listeners.get(entry.target)?.(entry);
      },
      { root: this.#scroller.current, rootMargin: RENDER_MARGIN },
    );
    this.#listeners.set(element, listener);
    this.#observer.observe(element);
    return () => {
      this.#listeners.delete(element);
      this.#observer?.unobserve(element);
    };
  }

  end(): void {
    this.#observer?.disconnect();
    this.#observer = undefined;
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
  const shownCount = useSignal(PAGE_SIZE);
  const isScrolledUp = useSignal(false);
  const messages = chat.messages.value;
  const isFirstPaintDone = useSignal(false);
  const visible = messages.slice(-shownCount.value).filter(({ role }) => role === "user" || role === "assistant");
  const rows = isFirstPaintDone.value ? visible : visible.slice(-INITIAL_COUNT);
  const nearObserver = useMemo(() => new NearObserver(scroller), []);
  const hasMore = chat.hasMore.value || shownCount.value < messages.length;
  const showMore = async (): Promise<void> => {
    if (shownCount.value >= chat.messages.value.length) await chat.loadOlder();
    shownCount.value += PAGE_SIZE;
  };
  useEffect(() => {
    const element = top.current;
    if (!element || !hasMore || !isFirstPaintDone.value) return;
    const observer = new IntersectionObserver(([one]) => void (one?.isIntersecting && showMore().catch(showError)), {
      root: scroller.current,
      rootMargin: "600px 0px",
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [hasMore, rows.length]);
  useEffect(() => {
    isFirstPaintDone.value = true;
    return () => nearObserver.end();
  }, []);
  useEffect(() => {
    if (isScrolledUp.peek() || messages.length <= MAX_MESSAGES) return;
    shownCount.value = PAGE_SIZE;
    chat.trimMessages(MAX_MESSAGES / 2);
  }, [messages.length]);
  const onScroll = (): void => {
    const isUp = (scroller.current?.scrollTop ?? 0) < -600;
    if (isUp !== isScrolledUp.value) isScrolledUp.value = isUp;
  };
  return (
    <div class="flow" ref={scroller} tabIndex={0} role="region" aria-label="Chat messages" onScroll={onScroll}>
      {isScrolledUp.value && (
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
          <MessageRow key={message.id} nearObserver={nearObserver}>
            <Message chat={chat} message={message} isOwner={isOwner} />
          </MessageRow>
        ))}
        <li>
          <LiveAnswer chat={chat} />
          {children}
        </li>
      </ol>
    </div>
  );
};

/** One row: rendered while near the viewport, otherwise an empty box of the same height. */
const MessageRow = ({ nearObserver, children }: { nearObserver: NearObserver; children: ComponentChildren }) => {
  const box = useRef<HTMLLIElement>(null);
  const height = useSignal<number | undefined>(undefined);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    return nearObserver.observe(element, ({ isIntersecting, boundingClientRect }) => {
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
