// What a person has typed into a form, for dialogs and the pages of the door.
/** The texts of a form by the names of their fields. */
export const readTexts = (form: HTMLFormElement): Record<string, string> =>
  Object.fromEntries(
    [...new FormData(form)].flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])),
  );
