// Which test files say something about a server in another process: read by test/run.ts before it tries the compiled binary.

/**
 * Test files under `folder` that can run against another process: files that take nothing of `seed.ts` but
 * `seedUser`, nor stand on a helper that does, and have a test that inside.ts does not leave out there.
 */
export const outsideFiles = async (root: string, folder: string): Promise<string[]> => {
  const files = [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(root)].sort();
  const texts = new Map(
    await Promise.all(files.map(async (file) => [file, await Bun.file(`${root}/${file}`).text()] as const)),
  );
  const reaches = (file: string): boolean => {
    const text = texts.get(file) ?? "";
    if (/import \{[^}]*\b(contextOf|seedAgent|supersede)\b[^}]*\}/.test(text)) return true;
    const neighbors = [...text.matchAll(/from "(\.\.?\/[^"]+)"/g)].map(
      ([, path]) => new URL(path as string, `file:///${file}`),
    );
    return neighbors.some(({ pathname }) => reaches(pathname.slice(1)));
  };
  return files.filter((file) => file.endsWith(".test.ts") && !reaches(file) && !isInside(texts.get(file) ?? ""));
};

/** Whether all tests of a file are those of inside.ts: against another process it registers none. */
const isInside = (text: string): boolean =>
  /\b(test|describe)Inside/.test(text) && !/^(test|testNeeding|testOfOne|describe)\b/m.test(text);
