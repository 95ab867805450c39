// Renders a QR code as SVG, for enrolling an authenticator app.
import { renderSVG } from "uqr";

/** Black on white regardless of the theme: scanners need the contrast. */
export const renderQrCode = (text: string): string => renderSVG(text, { pixelSize: 4, border: 4 });
