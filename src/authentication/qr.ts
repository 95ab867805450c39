// A QR code as an SVG picture, for enrolling an authenticator app.
import { renderSVG } from "uqr";

/** Black on white whatever the page looks like: scanners need the contrast. */
export const qrSvg = (text: string): string => renderSVG(text, { pixelSize: 4, border: 4 });
