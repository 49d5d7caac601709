import { existsSync } from 'node:fs'

/** The folder into which the console is built. The management service serves its files. */
export const CONSOLE_FOLDER = new URL('dist', import.meta.url).pathname

/** Builds the console if its sources have changed. A published package contains the built console instead of the sources. */
export async function ensureConsole(): Promise<void> {
  if (!existsSync(new URL('src/main.tsx', import.meta.url))) return
  const { buildConsole } = await import('./build/build.ts')
  await buildConsole()
}
