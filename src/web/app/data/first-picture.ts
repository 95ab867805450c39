// The moment when the page has shown its first picture: what nobody sees in it waits for that, so that it comes sooner.

/** In a window that nobody sees no picture is made. */
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
