// The moment of the page's first paint: work that is not visible in it waits, so that the paint comes sooner.

/** A hidden window is never painted. */
const MAX_WAIT_MS = 1_000;

let tell = (): void => {};

/** Resolves when the first picture is shown, or would be. */
export const firstPicture = new Promise<void>((resolve) => {
  tell = resolve;
});

/** The page has been drawn. */
export const drawn = (): void => {
  setTimeout(tell, MAX_WAIT_MS);
  // Behind the frame, not before it.
  requestAnimationFrame(() => setTimeout(tell));
};
