/** Whether a page may show it: the policy of every page lets in pictures of the server itself and such as lie in their own address. */
export const isOwnPicture = (address: string): boolean => /^(?:\/(?!\/)|data:image\/)/.test(address);
