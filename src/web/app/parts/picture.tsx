// The icon of a template or an app: its own image, an emoji, a logo, or a default icon if it has none that can be shown. Images of other hosts are
// not fetched: the page's policy forbids it.
import { useSignal } from "@preact/signals";
import { isOwnPicture } from "../../browser/picture.ts";
import type { IconName } from "../icons.ts";
import { LOGOS } from "../logos.ts";
import { Icon } from "./icon.tsx";

/** Where the build stores the logos. */
declare const SLIPWAY_LOGOS: string;

/** `/emojis/25b6-fe0f.png` is the emoji with these code points. */
const SIGN = /^\/emojis\/([0-9a-f]{2,6}(?:-[0-9a-f]{2,6})*)\.png$/i;
/** Names of well-known logos, which Slipway does not serve. */
const NAMED = /^\/icon\/([\w.-]+)\.\w+$/;
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

const toSign = (points: string): string | undefined => {
  const codes = points.split("-").map((point) => Number.parseInt(point, 16));
  return codes.every((code) => code <= 0x10_ff_ff) ? String.fromCodePoint(...codes) : undefined;
};

export const Picture = ({ of, otherwise }: { of: string; otherwise: IconName }) => {
  const isMissing = useSignal(false);
  const [, points] = SIGN.exec(of) ?? [];
  const sign = points && toSign(points);
  if (sign) return <span aria-hidden="true">{sign}</span>;
  const name = NAMED.exec(of)?.[1]?.toLowerCase();
  if (name !== undefined && isLogo(name)) {
    return (
      <svg class="i" aria-hidden="true">
        <use href={`${SLIPWAY_LOGOS}#${LOGOS[name]}`} />
      </svg>
    );
  }
  if (name !== undefined || isMissing.value || !isOwnPicture(of)) {
    return <Icon name={(name && SIMILAR_ICONS[name]) || otherwise} />;
  }
  return <img src={of} alt="" width="20" height="20" onError={() => (isMissing.value = true)} />;
};
