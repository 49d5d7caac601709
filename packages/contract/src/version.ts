/** The version of all packages, images and documents of this project. `package.json` of the root contains the same version. */
export const VERSION = '1.0.0'
/** The address of the repository, which all packages name. The `repository` in `package.json` of the root is the same. */
export const REPOSITORY = 'https://github.com/keyward/keyward'
