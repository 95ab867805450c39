// Signals the page's first paint. Work that does not affect the first paint waits for it.

/** Fallback for hidden windows, which are never painted. */
const MAX_WAIT_MS = 1_000;

let resolveFirstPaint = (): void => {};

/** Resolves after the first paint, or after MAX_WAIT_MS. */
export const firstPaint = new Promise<void>((resolve) => {
  resolveFirstPaint = resolve;
});

/** Reports that the page has been rendered. */
export const reportRendered = (): void => {
  setTimeout(resolveFirstPaint, MAX_WAIT_MS);
  // After the frame, not before it.
  requestAnimationFrame(() => setTimeout(resolveFirstPaint));
};
