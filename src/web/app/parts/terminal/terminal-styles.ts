// Makes xterm's styles work under the page's policy, which forbids the <style> elements it creates. While xterm is created, such elements
// write to an adopted style sheet instead, which the policy allows.

const redirectRules = (element: HTMLElement): HTMLElement => {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  let text = "";
  element.hidden = true;
  Object.defineProperties(element, {
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
        Element.prototype.remove.call(element);
      },
    },
  });
  return element;
};

/** Runs `act`. Style elements that it creates write to an adopted style sheet. */
export const withAdoptedStyles = <T>(act: () => T): T => {
  const createElement = document.createElement;
  document.createElement = ((name: string, options?: ElementCreationOptions) =>
    name.toLowerCase() === "style"
      ? redirectRules(createElement.call(document, "span") as HTMLElement)
      : createElement.call(document, name, options)) as typeof document.createElement;
  try {
    return act();
  } finally {
    document.createElement = createElement;
  }
};

/** xterm sets 24-bit colors and selections through style attributes, which the policy also forbids. Sets them through the object model. */
export const styleSpansByObject = (): void => {
  HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
};
