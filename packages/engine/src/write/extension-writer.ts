/**
 * Writes license extensions, which contain the fields that only some licenses have. A license has an extension only if
 * one of these fields differs from its default.
 */

import type { IndexStore } from '../memory/index-store.ts'
import {
  EXTENSION_ENTITLEMENTS,
  EXTENSION_GRACE_DAYS,
  EXTENSION_LEASE_SECONDS,
  EXTENSION_LICENSE,
  EXTENSION_WORDS,
  LICENSE_EXTENSION,
  ROW_WORDS,
} from '../memory/layout.ts'
import type { LicenseRecord } from '../model.ts'

/** A field of the extension whose value is a number. */
export interface ExtensionField {
  /** The field's offset, from `layout.ts`. */
  word: number
  /** Returns the stored number, 0 for the default. */
  valueOf: (record: LicenseRecord) => number
}

/** The fields of licenses that are in the extension and whose value is a positive integer or null, with their offsets. */
export const EXTENSION_NUMBERS = [
  { name: 'leaseSeconds', word: EXTENSION_LEASE_SECONDS },
  { name: 'graceDays', word: EXTENSION_GRACE_DAYS },
] as const satisfies readonly { name: keyof LicenseRecord; word: number }[]

const EXTENSION_FIELDS: readonly ExtensionField[] = EXTENSION_NUMBERS.map(({ name, word }) => ({
  word,
  valueOf: (record) => record[name] ?? 0,
}))

export class ExtensionWriter {
  readonly #store: IndexStore
  readonly #fields: readonly ExtensionField[]
  /** The words of the extension that is being written or compared. */
  readonly #wanted = new Int32Array(EXTENSION_WORDS)

  constructor(store: IndexStore, fields = EXTENSION_FIELDS) {
    this.#store = store
    this.#fields = fields
  }

  /**
   * Writes the extension fields of a license, and allocates or frees its extension. If the index has no capacity for a field, omits the
   * field and returns false. The license is written nevertheless, because the change may be a revocation.
   */
  write(license: number, record: LicenseRecord): boolean {
    const { extensions, licenses, values } = this.#store
    const isNeeded = this.#resolve(record)
    const value = record.entitlements === null ? 0 : values.acquire(record.entitlements)
    if (!isNeeded && value === 0) {
      this.remove(license)
      return record.entitlements === null
    }
    let extension = this.#rowOf(license)
    if (extension === 0) {
      if (!extensions.hasCapacity(1)) {
        if (value !== 0) values.release(value)
        return false
      }
      extension = extensions.allocate()
      licenses.region.set(license * ROW_WORDS + LICENSE_EXTENSION, extension)
    }
    const words = extensions.region
    const base = extension * EXTENSION_WORDS
    words.set(base + EXTENSION_LICENSE, license)
    for (const { word } of this.#fields) words.set(base + word, this.#wanted[word]!)
    const former = words.get(base + EXTENSION_ENTITLEMENTS)
    words.set(base + EXTENSION_ENTITLEMENTS, value)
    if (former !== 0) values.release(former)
    return value !== 0 || record.entitlements === null
  }

  /** Returns whether the index contains exactly the record's extension fields for the license. */
  isEqual(license: number, record: LicenseRecord): boolean {
    const { extensions, values } = this.#store
    const isNeeded = this.#resolve(record) || record.entitlements !== null
    const extension = this.#rowOf(license)
    if (extension === 0 || !isNeeded) return (extension === 0) === !isNeeded
    const value = record.entitlements === null ? 0 : values.find(record.entitlements)
    if (value === 0 && record.entitlements !== null) return false
    const words = extensions.region
    const base = extension * EXTENSION_WORDS
    if (words.get(base + EXTENSION_ENTITLEMENTS) !== value) return false
    return this.#fields.every(({ word }) => words.get(base + word) === this.#wanted[word])
  }

  /** Frees the extension of a license, if it has one. */
  remove(license: number): void {
    const extension = this.#rowOf(license)
    if (extension === 0) return
    const { extensions, licenses, values } = this.#store
    const value = extensions.region.get(extension * EXTENSION_WORDS + EXTENSION_ENTITLEMENTS)
    if (value !== 0) values.release(value)
    licenses.region.set(license * ROW_WORDS + LICENSE_EXTENSION, 0)
    extensions.free(extension)
  }

  /** Writes the extension fields of the record to `#wanted`. Returns whether any field differs from its default. */
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
    return this.#store.licenses.region.get(license * ROW_WORDS + LICENSE_EXTENSION)
  }
}
