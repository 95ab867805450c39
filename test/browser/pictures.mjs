// Compares screenshots with stored references: each is scaled down to one pixel per cell of the 4 pixel grid, and compared cell by cell, so
// that slightly different letters do not count and a moved block does. Chromium itself reads and writes the files.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitForTransitions } from "./app-page.mjs";

/** Cells that differ by more than this, out of 255, are counted. */
const MAX_CHANNEL_DIFFERENCE = 24;
/** The share of cells that may differ. */
const MAX_DIFFERING_SHARE = 0.0025;
const MAX_TRIES = 20;

/** Runs in a blank page: scales `picture` down, and returns the share that differs from `reference`; both are PNG files in base64. */
async function compareInPage({ picture, reference, maxDifference }) {
  const GRID = 4;
  const readPixels = async (file) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${file}`)).blob());
    const { width, height } = image;
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, width, height);
  };
  const scaleDown = ({ data, width }, factor, columns, rows) => {
    const scaled = new ImageData(columns, rows);
    // With plain numbers: an iterator for each of a million pixels took longer than the screenshot.
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        let [red, green, blue, alpha] = [0, 0, 0, 0];
        for (let y = 0; y < factor; y++) {
          let from = ((row * factor + y) * width + column * factor) * 4;
          for (let x = 0; x < factor; x++, from += 4) {
            red += data[from];
            green += data[from + 1];
            blue += data[from + 2];
            alpha += data[from + 3];
          }
        }
        const to = (row * columns + column) * 4;
        scaled.data[to] = red / (factor * factor);
        scaled.data[to + 1] = green / (factor * factor);
        scaled.data[to + 2] = blue / (factor * factor);
        scaled.data[to + 3] = alpha / (factor * factor);
      }
    }
    return scaled;
  };
  const original = await readPixels(picture);
  const scaledDown = scaleDown(original, GRID, Math.floor(original.width / GRID), Math.floor(original.height / GRID));
  const canvas = new OffscreenCanvas(scaledDown.width, scaledDown.height);
  canvas.getContext("2d").putImageData(scaledDown, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  const png = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  if (reference === undefined) return { png, differingShare: 1 };
  const referencePixels = await readPixels(reference);
  if (referencePixels.width !== scaledDown.width || referencePixels.height !== scaledDown.height)
    return { png, differingShare: 1 };
  const [columns, rows] = [Math.floor(scaledDown.width / 2), Math.floor(scaledDown.height / 2)];
  const [actual, expected] = [scaledDown, referencePixels].map((image) => scaleDown(image, 2, columns, rows).data);
  let differingCells = 0;
  for (let offset = 0; offset < actual.length; offset += 4) {
    if ([0, 1, 2].some((channel) => Math.abs(actual[offset + channel] - expected[offset + channel]) > maxDifference))
      differingCells++;
  }
  return { png, differingShare: differingCells / (columns * rows) };
}

/**
 * Captures a page in four forms and compares each with `folder`/NAME-FORM.png. `renew`: the capture becomes the reference. `blank` is a
 * page without a policy; changed pages are written to `changedFolder`, if given.
 */
export const comparePictures = async (page, name, { blank, folder, renew, changedFolder, tries = MAX_TRIES }) => {
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
      let [previous, comparison] = [undefined, undefined];
      // Waits for pages that are still loading: until they match or, for a new reference, until they stop changing.
      for (let attempt = 1; attempt <= tries; attempt++) {
        await waitForTransitions(page);
        const picture = (await page.screenshot({ animations: "disabled", caret: "hide" })).toString("base64");
        comparison = await blank.evaluate(compareInPage, {
          picture,
          reference: renew ? previous : reference,
          maxDifference: MAX_CHANNEL_DIFFERENCE,
        });
        if (
          renew
            ? comparison.differingShare === 0
            : comparison.differingShare <= MAX_DIFFERING_SHARE || reference === undefined
        )
          break;
        if (renew) previous = comparison.png;
        if (attempt === tries && changedFolder)
          writeFileSync(join(changedFolder, `${name}-${scheme}-${width}.png`), picture, "base64");
      }
      if (renew) writeFileSync(file, comparison.png, "base64");
      else if (comparison.differingShare > MAX_DIFFERING_SHARE)
        problems.push(`${name} ${scheme} ${width}: ${(comparison.differingShare * 100).toFixed(2)} % is not as it was`);
    }
  }
  return problems;
};
