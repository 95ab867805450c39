// Derives the container variant of an example template: the same parameters, scripts and apps, in an image for development. Pure.

const container = (image: string): string => `    type: docker_container
    docker:
      image: ${image}
      env: { LANG: C.UTF-8 }
      volumes:
        - { name: home, path: /home }
`;
const PROVISIONER = /^provisioner: local$/m;
const TYPE = /^ {4}type: local_process\n/m;

/** Throws if the manifest does not have the expected layout. */
export const inContainer = (manifest: string, image: string): string => {
  for (const line of [PROVISIONER, TYPE]) {
    if (!line.test(manifest)) throw new Error(`the template has no line ${line.source}`);
  }
  return manifest.replace(PROVISIONER, "provisioner: docker").replace(TYPE, container(image));
};
