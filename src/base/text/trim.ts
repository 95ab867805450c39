// Removes characters at the ends of a text in linear time. A pattern such as /-+$/ takes quadratic time on text with many of them inside.

/** Returns the text without these characters at its end. `characters`: each one UTF-16 unit. */
export const trimEnd = (text: string, characters: string): string => {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
};

/** Returns the text without these characters at both ends. */
export const trimEnds = (text: string, characters: string): string => {
  const trimmed = trimEnd(text, characters);
  let start = 0;
  while (start < trimmed.length && characters.includes(trimmed.charAt(start))) start += 1;
  return trimmed.slice(start);
};
