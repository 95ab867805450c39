// Chooses a readable text color for a background (WCAG 2: relative luminance).

const toChannel = (hex: string): number => {
  const value = Number.parseInt(hex, 16) / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
};

/** Returns black or white, whichever has more contrast with a color such as #1f6feb: always at least 4.5 to 1. */
export const chooseInk = (colour: string): "#000000" | "#ffffff" => {
  const [red, green, blue] = [1, 3, 5].map((at) => toChannel(colour.slice(at, at + 2))) as [number, number, number];
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
};
