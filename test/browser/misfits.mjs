// A layout check that runs in the page itself.

/** Returns what overflows, is too small to tap, or has no name. */
export function listMisfits() {
  const misfits = [];
  if (document.documentElement.scrollWidth > innerWidth) misfits.push("scrolls sideways");
  for (const control of document.querySelectorAll("a, button, input, select")) {
    // The tap target of a radio button is its label.
    const { height } = (control.type === "radio" ? control.closest("label") : control).getBoundingClientRect();
    const isInText = control.tagName === "A" && getComputedStyle(control).display === "inline" && control.closest("p");
    if (height === 0 || isInText) continue;
    // Small controls are 36 high by design.
    if (height < (control.matches(".sm") ? 35.5 : 39.5)) misfits.push(`${control.outerHTML} is ${height} high`);
    const name = control.ariaLabel || control.textContent || control.labels?.[0]?.textContent;
    if (!name?.trim()) misfits.push(`${control.outerHTML} has no name`);
  }
  return misfits.map((misfit) => `${location.pathname}: ${misfit}`);
}
