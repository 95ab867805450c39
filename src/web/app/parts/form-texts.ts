// Reads the values of a form, for dialogs and sign-in pages, and words its errors.

/** Returns the detail of an error as it is shown at its field. */
export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns the values of a form by the names of its fields. */
export const readTexts = (form: HTMLFormElement): Record<string, string> =>
  Object.fromEntries(
    [...new FormData(form)].flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])),
  );
