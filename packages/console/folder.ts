/** The folder into which the console is built. The management service serves its files. */
export const CONSOLE_FOLDER = new URL('dist', import.meta.url).pathname
