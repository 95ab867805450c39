// Compares screenshots with stored references: each is scaled down to one pixel per cell of the 4 pixel grid, and compared cell by cell, so
// that slightly different letters do not count and a moved block does. Chromium itself reads and writes the files.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitForTransitions } from "./app-page.mjs";

/** Cells that differ by more than this, out of 255, are counted. */
const NEAR = 24;
/** The share of cells that may differ. */
const FEW = 0.0025;
const TRIES = 20;

/** Runs in a blank page: scales `picture` down, and returns the share that differs from `reference`; both are PNG files in base64. */
async function compareInPage({ picture, reference, near }) {
  const GRID = 4;
  const pixelsOf = async (file) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${file}`)).blob());
    const { width, height } = image;
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, width, height);
  };
  const smaller = ({ data, width }, by, columns, rows) => {
    const created = new ImageData(columns, rows);
    // With plain numbers: an iterator for each of a million pixels took longer than the screenshot.
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        let [red, green, blue, alpha] = [0, 0, 0, 0];
        for (let y = 0; y < by; y++) {
          let from = ((row * by + y) * width + column * by) * 4;
          for (let x = 0; x < by; x++, from += 4) {
            red += data[from];
            green += data[from + 1];
            blue += data[from + 2];
            alpha += data[from + 3];
          }
        }
        const to = (row * columns + column) * 4;
        created.data[to] = red / (by * by);
        created.data[to + 1] = green / (by * by);
        created.data[to + 2] = blue / (by * by);
        created.data[to + 3] = alpha / (by * by);
      }
    }
    return created;
  };
  const whole = await pixelsOf(picture);
  const small = smaller(whole, GRID, Math.floor(whole.width / GRID), Math.floor(whole.height / GRID));
  const canvas = new OffscreenCanvas(small.width, small.height);
  canvas.getContext("2d").putImageData(small, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  const png = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  if (reference === undefined) return { png, off: 1 };
  const referencePixels = await pixelsOf(reference);
  if (referencePixels.width !== small.width || referencePixels.height !== small.height) return { png, off: 1 };
  const [columns, rows] = [Math.floor(small.width / 2), Math.floor(small.height / 2)];
  const [one, other] = [small, referencePixels].map((image) => smaller(image, 2, columns, rows).data);
  let off = 0;
  for (let at = 0; at < one.length; at += 4) {
    if ([0, 1, 2].some((channel) => Math.abs(one[at + channel] - other[at + channel]) > near)) off++;
  }
  return { png, off: off / (columns * rows) };
}

/**
 * Captures a page in four forms and compares each with `folder`/NAME-FORM.png. `renew`: the capture becomes the reference. `blank` is a
 * page without a policy; changed pages are written to the folder `seen`, if given.
 */
export const comparePictures = async (page, name, { blank, folder, renew, seen, tries = TRIES }) => {
  const problems = [];
  for (const { width, height } of [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize({ width, height });
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      const file = join(folder, `${name}-${scheme}-${width}.png`);
      const reference = !renew && existsSync(file) ? readFileSync(file, "base64") : undefined;
      let [before, created] = [undefined, undefined];
      // Waits for pages that are still loading: until they match or, for a new reference, until they stop changing.
      for (let one = 1; one <= tries; one++) {
        await waitForTransitions(page);
        const picture = (await page.screenshot({ animations: "disabled", caret: "hide" })).toString("base64");
        created = await blank.evaluate(compareInPage, { picture, reference: renew ? before : reference, near: NEAR });
        if (renew ? created.off === 0 : created.off <= FEW || reference === undefined) break;
        if (renew) before = created.png;
        if (one === tries && seen) writeFileSync(join(seen, `${name}-${scheme}-${width}.png`), picture, "base64");
      }
      if (renew) writeFileSync(file, created.png, "base64");
      else if (created.off > FEW)
        problems.push(`${name} ${scheme} ${width}: ${(created.off * 100).toFixed(2)} % is not as it was`);
    }
  }
  return problems;
};
