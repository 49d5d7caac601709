/** The clients of this project as programs that the contract suite can run, and the tools that each of them needs. */

import { fileURLToPath } from 'node:url'

export interface ClientUnderTest {
  language: string
  /** Returns the reason why the client cannot run here, or null. */
  missing: () => string | null
  /** Builds the client in the folder and returns its command line. Throws the compiler's messages. */
  build: (folder: string) => string[]
}

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

export const clients: readonly ClientUnderTest[] = [
  {
    language: 'TypeScript',
    missing: () => null,
    build: () => [process.execPath, at('contract-suite/sdk.ts')],
  },
]
