// Which images a template or a repository may name. The engine is shared by everybody's workspaces, and takes an ID, or the beginning of one, for
// a name: with it a template could start any image there is, also images that were built from other people's repositories.
import { ProvisionError } from "../provisioner.ts";

/** Name of all images of repositories; the tag is the key of the configuration. */
export const REPOSITORY_IMAGE = "slipway-repository";
const ID = /^(?:sha256:)?[0-9a-f]+$/i;
const HUB = /^(?:(?:index\.)?docker\.io\/)?(?:library\/)?/i;

/** Throws ProvisionError for an ID of an image, or what could be one, and for images of repositories. */
export const checkImageName = (image: string): void => {
  if (ID.test(image)) {
    throw new ProvisionError(
      `"${image}" could be the ID of an image. Name the image with its tag, such as ${image}:latest.`,
    );
  }
  const [name = ""] = image.replace(HUB, "").split(/[:@]/);
  if (name === REPOSITORY_IMAGE) {
    throw new ProvisionError("Images that were built from repositories cannot be used by name.");
  }
};
