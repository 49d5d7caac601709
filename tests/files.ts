/** Lists the files of the project, except installed and generated ones, for the tests in this folder. */

import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

const LEFT_OUT = new Set(['node_modules', '.git', '.keyward', 'coverage', 'dist', 'pnpm-lock.yaml'])

/** Matches the temporary folders that a test creates beside the Kubernetes overlays. */
const TEMPORARY = /^test-[0-9A-Za-z]{6}$/

/** Returns the sorted paths of files, relative to the root. */
export function projectFiles(folder = ROOT): string[] {
  const entries = readdirSync(folder, { withFileTypes: true }).filter(
    ({ name }) => !LEFT_OUT.has(name) && !TEMPORARY.test(name),
  )
  return entries
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return projectFiles(path)
      return entry.isFile() ? [relative(ROOT, path)] : []
    })
    .toSorted()
}

/** Returns whether a TypeScript file belongs to the sources of a program or package, and not to the tests. */
export function isSource(path: string): boolean {
  return /^(?:packages|services)\/[^/]+\/src\/|^(?:infra|bench)\/(?!test\/)/.test(path)
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
