/** Provides the schema of the previous version, on which services of this version and of that version must run. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const FOLDER = 'packages/database'

/**
 * Returns a temporary copy, which the caller removes, of the schema folder of the previous version: the last tag before this commit, or the parent commit without a tag.
 * Returns undefined if git has no such version, as in an archive of the sources, or if that version is from before `functions/`.
 */
export function copyPreviousSchema(): URL | undefined {
  try {
    const commit = git('rev-parse', lastTag() ?? 'HEAD~1')
      .toString()
      .trim()
    const archive = git('archive', `${commit}:${FOLDER}`, 'migrations', 'functions', 'grants.sql')
    const folder = mkdtempSync(join(tmpdir(), 'keyward-schema-'))
    execFileSync('tar', ['-x', '-C', folder], { input: archive })
    return pathToFileURL(join(folder, '/'))
  } catch {
    return undefined
  }
}

function lastTag(): string | undefined {
  try {
    return git('describe', '--tags', '--abbrev=0', 'HEAD~1').toString().trim()
  } catch {
    return undefined
  }
}

function git(...options: string[]): Buffer {
  return execFileSync('git', options, { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] })
}
