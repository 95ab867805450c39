// Reads the values of a form, for dialogs and sign-in pages.
/** Returns the values of a form by the names of its fields. */
export const readTexts = (form: HTMLFormElement): Record<string, string> =>
  Object.fromEntries(
    [...new FormData(form)].flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])),
  );
