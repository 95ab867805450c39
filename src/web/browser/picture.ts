/** Returns true if the pages' policy allows the image: it is served by this server or is a data URL. */
export const isAllowedPicture = (address: string): boolean => /^(?:\/(?!\/)|data:image\/)/.test(address);
