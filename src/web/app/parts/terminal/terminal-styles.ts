// xterm writes its rules into <style> elements, which the policy of the page forbids. While it is made, what it takes for such an element
// fills a sheet that the page has adopted: the object model may do what markup may not.

const fake = (made: HTMLElement): HTMLElement => {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  let text = "";
  made.hidden = true;
  Object.defineProperties(made, {
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
        Element.prototype.remove.call(made);
      },
    },
  });
  return made;
};

/** Does `work`, in which every style element that is made is one that fills an adopted sheet. */
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

/**
 * Colors of 24 bits and selections are style attributes of its letters, which the policy forbids as well: the same by the object model.
 */
export const styleLettersByObject = (): void => {
  HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
};
