// Parses resource addresses such as `module.a[0].terraform_data.x["k"]`. The graph uses addresses without indexes (facts/terraform 3.2,
// 3.3). Pure.

/** `["k"]` with escapes, or `[0]`. */
const INDEX_PATTERN = /\[(?:"(?:[^"\\]|\\.)*"|[^[\]]*)\]/g;

/** Returns the address without indexes, as in the graph. */
export const toLabel = (address: string): string => address.replace(INDEX_PATTERN, "");

/** Returns the module, such as `module.a[0]`; empty for the root module. */
export const getModule = (address: string): string => {
  const parts = splitAddress(address);
  const end = parts.findIndex((part, i) => i % 2 === 0 && part !== "module");
  return parts.slice(0, Math.max(0, end)).join(".");
};

/** Returns the resource's own index as written: `[0]`, `["k"]` or empty. */
export const getIndex = (address: string): string => /\[(?:"(?:[^"\\]|\\.)*"|[^[\]]*)\]$/.exec(address)?.[0] ?? "";

/** Splits at dots, except those inside an index. */
const splitAddress = (address: string): string[] => {
  const parts: string[] = [];
  let part = "";
  for (const [piece] of address.matchAll(/\[(?:"(?:[^"\\]|\\.)*"|[^[\]]*)\]|\.|[^.[]+/g)) {
    if (piece === ".") {
      parts.push(part);
      part = "";
    } else part += piece;
  }
  return [...parts, part];
};
