/** The folder that the console is built into, and that the management service serves it from. */
export const CONSOLE_FOLDER = new URL('dist', import.meta.url).pathname
