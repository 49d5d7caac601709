/** Lists the files of the project, except installed and generated ones, for the tests in this folder. */

import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

const LEFT_OUT = new Set(['node_modules', '.git', '.keyward', 'coverage', 'dist', 'pnpm-lock.yaml'])

/** The folders that a test creates beside the overlays of Kubernetes, and removes. */
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

/** Returns whether a TypeScript file is a source of a program or package and not a test. */
export function isSource(path: string): boolean {
  return /^(?:packages|services)\/[^/]+\/src\/|^(?:infra|bench)\/(?!test\/)/.test(path)
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
