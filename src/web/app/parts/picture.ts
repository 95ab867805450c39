// Which icons of templates and applications are shown: those that the policy of the page lets it load.
export const PICTURE = /^(?:\/|data:image\/)/;
