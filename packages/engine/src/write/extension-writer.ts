/**
 * Writes license extensions: the fields that only some licenses have. A license has an extension exactly if one of these
 * fields is not 0, so the other licenses cost neither memory nor time for them.
 */

import type { IndexStore } from '../memory/index-store.ts'
import { EXTENSION_LICENSE, EXTENSION_WORDS, LICENSE_EXTENSION, ROW_WORDS } from '../memory/layout.ts'
import type { LicenseRecord } from '../model.ts'

/** A field of the extension that is a number in its record. */
export interface ExtensionField {
  /** Its offset, from `layout.ts`. */
  word: number
  /** Returns what is stored, 0 for the default. */
  valueOf: (record: LicenseRecord) => number
}

/** The fields of licenses that are in the extension. */
export const EXTENSION_FIELDS: readonly ExtensionField[] = []

export class ExtensionWriter {
  readonly #store: IndexStore
  readonly #fields: readonly ExtensionField[]
  /** The words of the record that is being written or compared. */
  readonly #wanted = new Int32Array(EXTENSION_WORDS)

  constructor(store: IndexStore, fields = EXTENSION_FIELDS) {
    this.#store = store
    this.#fields = fields
  }

  /**
   * Writes the fields of a license's record, and allocates or frees its extension. Returns false when the index is too
   * full for a new one. The license is then without these fields, because the rest of its row must always fit: it may
   * be a revocation.
   */
  write(license: number, record: LicenseRecord): boolean {
    const isNeeded = this.#resolve(record)
    let extension = this.#rowOf(license)
    if (!isNeeded) {
      this.remove(license)
      return true
    }
    const { extensions, licenses } = this.#store
    if (extension === 0) {
      if (!extensions.hasCapacity(1)) return false
      extension = extensions.allocate()
      licenses.region.words[license * ROW_WORDS + LICENSE_EXTENSION] = extension
    }
    const { words } = extensions.region
    const base = extension * EXTENSION_WORDS
    words[base + EXTENSION_LICENSE] = license
    for (const { word } of this.#fields) words[base + word] = this.#wanted[word]!
    return true
  }

  /** Returns whether the index holds the fields of the record exactly so. */
  isEqual(license: number, record: LicenseRecord): boolean {
    const isNeeded = this.#resolve(record)
    const extension = this.#rowOf(license)
    if (extension === 0 || !isNeeded) return (extension === 0) === !isNeeded
    const { words } = this.#store.extensions.region
    const base = extension * EXTENSION_WORDS
    return this.#fields.every(({ word }) => words[base + word] === this.#wanted[word])
  }

  /** Frees the extension of a license, if it has one. */
  remove(license: number): void {
    const extension = this.#rowOf(license)
    if (extension === 0) return
    this.#store.licenses.region.words[license * ROW_WORDS + LICENSE_EXTENSION] = 0
    this.#store.extensions.free(extension)
  }

  /** Fills `#wanted`. Returns whether the record needs an extension. */
  #resolve(record: LicenseRecord): boolean {
    let isNeeded = false
    for (const { word, valueOf } of this.#fields) {
      const value = valueOf(record)
      this.#wanted[word] = value
      if (value !== 0) isNeeded = true
    }
    return isNeeded
  }

  #rowOf(license: number): number {
    return this.#store.licenses.region.words[license * ROW_WORDS + LICENSE_EXTENSION]!
  }
}
