/** Searches bytes and folders for many needles in one pass. */

import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'

import type { Needle } from './spellings.ts'

export interface Found {
  readonly place: string
  readonly of: string
  readonly spelling: string
  readonly isShort: boolean
  /** The text around the finding, which shows the source. */
  readonly around: string
}

export class Search {
  readonly #needles: readonly Needle[]
  /** The needles by their first two bytes. */
  readonly #byStart: (Needle[] | undefined)[] = Array.from({ length: 65_536 }, () => undefined)

  constructor(needles: readonly Needle[]) {
    this.#needles = [
      ...new Map(
        needles.map((needle) => [`${needle.of} ${Buffer.from(needle.bytes).toString('hex')}`, needle]),
      ).values(),
    ]
    for (const needle of this.#needles) {
      const [first = 0, second = 0] = needle.bytes
      const start = (first << 8) | second
      this.#byStart[start] = [...(this.#byStart[start] ?? []), needle]
    }
  }

  /** Returns the needles that `haystack` contains, each at most once. */
  in(place: string, haystack: string | Uint8Array): Found[] {
    const bytes =
      typeof haystack === 'string'
        ? Buffer.from(haystack)
        : Buffer.from(haystack.buffer, haystack.byteOffset, haystack.length)
    const found = new Map<Needle, Found>()
    for (let i = 1; i < bytes.length; i++) {
      const candidates = this.#byStart[((bytes[i - 1] ?? 0) << 8) | (bytes[i] ?? 0)]
      if (candidates === undefined) continue
      for (const needle of candidates) {
        const at = i - 1
        if (found.has(needle) || !standsAt(bytes, at, needle.bytes)) continue
        const { of, spelling, isShort } = needle
        const around = bytes.toString('latin1', Math.max(0, at - 60), at + needle.bytes.length + 60)
        found.set(needle, { place, of, spelling, isShort, around: around.replaceAll(/[^ -~]/g, '.') })
      }
    }
    return [...found.values()]
  }

  /** Searches every file below a folder. Also returns the total size of the files in bytes. */
  async inFolder(folder: string): Promise<{ found: Found[]; bytes: number }> {
    const found: Found[] = []
    let bytes = 0
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      const content = await readFile(path)
      bytes += content.length
      found.push(...this.in(relative(folder, path), content))
    }
    return { found, bytes }
  }

  /**
   * Removes findings that may be coincidental: a four-byte form counts only if at least half of the addresses are found in this form.
   */
  judge(found: readonly Found[]): Found[] {
    const short = new Set(this.#needles.filter((needle) => needle.isShort).map((needle) => needle.of))
    const spelled = new Map<string, Set<string>>()
    for (const { of, isShort, spelling } of found)
      if (isShort) spelled.set(spelling, (spelled.get(spelling) ?? new Set()).add(of))
    return found.filter(({ isShort, spelling }) => !isShort || (spelled.get(spelling)?.size ?? 0) * 2 >= short.size)
  }
}

function standsAt(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false
  return true
}
