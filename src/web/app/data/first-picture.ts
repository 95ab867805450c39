// Signals the page's first paint. Work that is not visible in it waits, so that the paint comes sooner.

/** Fallback for hidden windows, which are never painted. */
const MAX_WAIT_MS = 1_000;

let tell = (): void => {};

/** Resolves after the first paint, or after MAX_WAIT_MS. */
export const firstPaint = new Promise<void>((resolve) => {
  tell = resolve;
});

/** Reports that the page has been rendered. */
export const drawn = (): void => {
  setTimeout(tell, MAX_WAIT_MS);
  // After the frame, not before it.
  requestAnimationFrame(() => setTimeout(tell));
};
