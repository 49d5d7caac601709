import { readFileSync, statfsSync } from 'node:fs'

const MEMORY = '/dev/shm'
/** The free bytes from which memory holds the temporary files. */
const MIN_BYTES = 8 * 1024 ** 3

/**
 * Keeps the temporary files of tests and of their programs in memory, unless TMPDIR names another place. Cloning a database there costs a
 * tenth of the CPU time of cloning it on a disk.
 */
export function keepTemporaryFilesInMemory(): void {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    // Some containers forbid programs there, and tests build programs.
    const isExecutable = !/^\S+ \/dev\/shm \S+ \S*\bnoexec\b/m.test(readFileSync('/proc/mounts', 'utf8'))
    if (isExecutable && bavail * bsize >= MIN_BYTES) process.env['TMPDIR'] ??= MEMORY
  } catch {
    // Systems other than Linux have no such folder.
  }
}

/** Lets Node cache the modules of tests and of their programs (module-cache.mjs). */
export function cacheModules(): void {
  const options = process.env['NODE_OPTIONS'] ?? ''
  const option = `--import=${new URL('module-cache.mjs', import.meta.url).href}`
  if (!options.includes(option)) process.env['NODE_OPTIONS'] = `${options} ${option}`.trim()
}
