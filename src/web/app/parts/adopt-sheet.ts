// Adds style rules that only some pages need. They come with the page's script and are added as adopted style sheets, which the policy
// allows, so that the sheet that every page loads stays small.

const adopted = new Set<string>();

/** Adds the rules to the document, once for each text. */
export const adoptSheet = (rules: string): void => {
  if (adopted.has(rules)) return;
  adopted.add(rules);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
};
