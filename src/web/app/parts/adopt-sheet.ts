// Rules that only some pages need: they come with the page's script and are put into the document by the object model, which the policy
// allows; the sheet that every page loads stays small.

const adopted = new Set<string>();

/** Puts the rules into the page; once for each text. */
export const adoptSheet = (rules: string): void => {
  if (adopted.has(rules)) return;
  adopted.add(rules);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
};
