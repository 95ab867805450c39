// The icon of a template or an app: an image, an emoji, a logo, or otherwise a default icon. Images from other hosts are not loaded, because
// the page's policy forbids it.
import { useSignal } from "@preact/signals";
import { isAllowedPicture } from "../../browser/picture.ts";
import type { IconName } from "../icons.ts";
import { LOGOS } from "../logos.ts";
import { Icon } from "./icon.tsx";

/** Where the build stores the logos. */
declare const SLIPWAY_LOGOS: string;

/** `/emojis/25b6-fe0f.png` is the emoji with these code points. */
const EMOJI_PATTERN = /^\/emojis\/([0-9a-f]{2,6}(?:-[0-9a-f]{2,6})*)\.png$/i;
/** Names of well-known logos, which Slipway does not serve. */
const ICON_PATTERN = /^\/icon\/([\w.-]+)\.\w+$/;
const SIMILAR_ICONS: Readonly<Record<string, IconName>> = {
  terminal: "terminal",
  code: "code",
  aws: "cloud",
  folder: "file",
  filebrowser: "file",
  git: "branch",
  github: "branch",
  gitlab: "branch",
  desktop: "cols",
  novnc: "cols",
  database: "box",
  container: "box",
  claude: "spark",
  ai: "spark",
};

const isLogo = (name: string): name is keyof typeof LOGOS => Object.hasOwn(LOGOS, name);

const toEmoji = (points: string): string | undefined => {
  const codes = points.split("-").map((point) => Number.parseInt(point, 16));
  return codes.every((code) => code <= 0x10_ff_ff) ? String.fromCodePoint(...codes) : undefined;
};

export const Picture = ({ of, otherwise }: { of: string; otherwise: IconName }) => {
  const isMissing = useSignal(false);
  const [, points] = EMOJI_PATTERN.exec(of) ?? [];
  const emoji = points && toEmoji(points);
  if (emoji) return <span aria-hidden="true">{emoji}</span>;
  const name = ICON_PATTERN.exec(of)?.[1]?.toLowerCase();
  if (name !== undefined && isLogo(name)) {
    return (
      <svg class="i" aria-hidden="true">
        <use href={`${SLIPWAY_LOGOS}#${LOGOS[name]}`} />
      </svg>
    );
  }
  if (name !== undefined || isMissing.value || !isAllowedPicture(of)) {
    return <Icon name={(name && SIMILAR_ICONS[name]) || otherwise} />;
  }
  return <img src={of} alt="" width="20" height="20" onError={() => (isMissing.value = true)} />;
};
