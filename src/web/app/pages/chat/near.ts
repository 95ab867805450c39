// Detects which rows of a long conversation are near the viewport, with one observer for all of them.
import type { RefObject } from "preact";

/** Distance from the viewport up to which a message is rendered. */
const MARGIN = "1200px 0px";

type Hear = (entry: IntersectionObserverEntry) => void;

export class Near {
  readonly #scroller: RefObject<HTMLElement | null>;
  readonly #heard = new Map<Element, Hear>();
  #eye: IntersectionObserver | undefined;

  constructor(scroller: RefObject<HTMLElement | null>) {
    this.#scroller = scroller;
  }

  /** Calls back when the element comes near or moves away, and once initially. Returns a function that stops. */
  observe(element: Element, hear: Hear): () => void {
    this.#eye ??= new IntersectionObserver(
      (entries) => {
        for (const entry of entries) this.#heard.get(entry.target)?.(entry);
      },
      { root: this.#scroller.current, rootMargin: MARGIN },
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
