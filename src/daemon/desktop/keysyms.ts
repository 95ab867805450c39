// X keysyms of keys: characters, and named keys in the spellings that models use. Pure.

const NAMED_KEYSYMS: Readonly<Record<string, number>> = {
  return: 0xff0d,
  enter: 0xff0d,
  tab: 0xff09,
  backspace: 0xff08,
  escape: 0xff1b,
  esc: 0xff1b,
  space: 0x20,
  delete: 0xffff,
  del: 0xffff,
  insert: 0xff63,
  home: 0xff50,
  end: 0xff57,
  menu: 0xff67,
  print: 0xff61,
  left: 0xff51,
  up: 0xff52,
  right: 0xff53,
  down: 0xff54,
  page_up: 0xff55,
  page_down: 0xff56,
  pageup: 0xff55,
  pagedown: 0xff56,
  caps_lock: 0xffe5,
  plus: 0x2b,
  minus: 0x2d,
  shift: 0xffe1,
  ctrl: 0xffe3,
  control: 0xffe3,
  alt: 0xffe9,
  option: 0xffe9,
  super: 0xffeb,
  meta: 0xffeb,
  cmd: 0xffeb,
  win: 0xffeb,
};

/** Returns the keysym of one character. */
export const toKeysym = (character: string): number => {
  if (character === "\n" || character === "\r") return 0xff0d;
  if (character === "\t") return 0xff09;
  const code = character.codePointAt(0) ?? 0x20;
  return code < 0x100 ? code : 0x01000000 | code;
};

/** Returns the keysyms of a chord such as `ctrl+shift+t`; undefined if a key is unknown. */
export const parseKeysyms = (chord: string): number[] | undefined => {
  const names = chord.length === 1 ? [chord] : chord.split("+");
  const keysyms = names.map((name) => {
    const named = NAMED_KEYSYMS[name.toLowerCase().replace(/_[lr]$/, "")];
    const functionKey = /^f([1-9]|1\d|2[0-4])$/i.exec(name)?.[1];
    if (named !== undefined) return named;
    if (functionKey !== undefined) return 0xffbd + Number(functionKey);
    return [...name].length === 1 ? toKeysym(name) : undefined;
  });
  return keysyms.includes(undefined) ? undefined : (keysyms as number[]);
};
