/** The version of all packages, images and documents of this project. `package.json` of the root contains the same version. */
export const VERSION = '1.0.0'
