// Makes xterm's styles work under the page's policy, which forbids the <style> elements it creates. While xterm is created, such elements
// write to an adopted style sheet instead, which the policy allows.

const fake = (created: HTMLElement): HTMLElement => {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  let text = "";
  created.hidden = true;
  Object.defineProperties(created, {
    sheet: { get: () => sheet },
    textContent: {
      get: () => text,
      set: (rules: string) => {
        text = rules;
        sheet.replaceSync(rules);
      },
    },
    remove: {
      value: () => {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
        Element.prototype.remove.call(created);
      },
    },
  });
  return created;
};

/** Runs `work`; style elements created in it fill an adopted sheet. */
export const withAdoptedStyles = <T>(work: () => T): T => {
  const create = document.createElement;
  document.createElement = ((name: string, options?: ElementCreationOptions) =>
    name.toLowerCase() === "style"
      ? fake(create.call(document, "span") as HTMLElement)
      : create.call(document, name, options)) as typeof document.createElement;
  try {
    return work();
  } finally {
    document.createElement = create;
  }
};

/** xterm sets 24-bit colors and selections through style attributes, which the policy also forbids. Sets them through the object model. */
export const styleLettersByObject = (): void => {
  HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
};
