// Finds the test files that can run against a server in another process, for test/run.ts before it tests the compiled binary.

/**
 * Returns the test files in `folder` that can run against another process: they use only `seedUser` of `seed.ts`, also indirectly, and
 * contain tests that in-process.ts does not skip.
 */
export const listOutsideFiles = async (root: string, folder: string): Promise<string[]> => {
  const files = [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(root)].sort();
  const texts = new Map(
    await Promise.all(files.map(async (file) => [file, await Bun.file(`${root}/${file}`).text()] as const)),
  );
  const needsServerInProcess = (file: string): boolean => {
    const text = texts.get(file) ?? "";
    if (/import \{[^}]*\b(getContext|seedAgent|supersedeAgent)\b[^}]*\}/.test(text)) return true;
    const neighbors = [...text.matchAll(/from "(\.\.?\/[^"]+)"/g)].map(
      ([, path]) => new URL(path as string, `file:///${file}`),
    );
    return neighbors.some(({ pathname }) => needsServerInProcess(pathname.slice(1)));
  };
  return files.filter(
    (file) => file.endsWith(".test.ts") && !needsServerInProcess(file) && !isInProcess(texts.get(file) ?? ""),
  );
};

/** Returns true if all tests of a file come from in-process.ts, which skips them if the server is another process. */
const isInProcess = (text: string): boolean =>
  /\b(test|describe)In(Single)?Process/.test(text) && !/^(test|testNeeding|testSingleServer|describe)\b/m.test(text);
