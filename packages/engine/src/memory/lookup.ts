/**
 * Lookups of rows: any row by its id, a license by its key, a credential by its secret, and a rule by its scope, type
 * and value. An entry of a table has 8 bytes: a 32-bit hash and the row number. A lookup then compares the stored id, key, secret or
 * value. Row numbers are below 2^28, and where a table contains several kinds, the four bits above the number identify the kind.
 * Rules have a separate table, because most checks search for several rules and find none. That table is small enough for
 * the processor's caches, unlike a table with a million license keys.
 */

import { hashPair, hashWords, readWord, scramble } from './bits.ts'
import {
  CREDENTIAL_SECRET,
  CREDENTIAL_SECRET_WORDS,
  ID,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_KEY_HASH,
  ROW_WORDS,
  RULE_SCOPE,
  RULE_TRAITS,
  RULE_VALUE,
  ruleType,
} from './layout.ts'
import { type LinearHashTable, NONE } from './linear-hash-table.ts'
import type { MachineSet } from './machine-set.ts'
import type { Memory, Region } from './shared-memory.ts'
import type { Slab } from './slab.ts'

const KIND_SHIFT = 28
const ROW_MASK = (1 << KIND_SHIFT) - 1

// Kinds of entries in `byKey`.
const BY_KEY = 1
const BY_SECRET = 2

/** The structures that a lookup reads and changes. */
export interface LookupParts<View extends Region = Region> {
  readonly memory: Memory<View>
  readonly organizations: Slab<View>
  readonly credentials: Slab<View>
  readonly products: Slab<View>
  readonly customers: Slab<View>
  readonly licenses: Slab<View>
  readonly rules: Slab<View>
  readonly byId: LinearHashTable
  readonly byKey: LinearHashTable
  readonly byRule: LinearHashTable
  readonly machines: MachineSet
}

/**
 * Binds the hash of a license key to an organization, in place, because two organizations may use the same key. Each
 * word is XORed with a different bijection of the organization's generation. Only the first three words are compared,
 * see `layout.ts`.
 */
export function bindKey(hash: Int32Array, organizationGeneration: number): void {
  hash[0]! ^= scramble(organizationGeneration)
  hash[1]! ^= scramble(organizationGeneration + 0x3c6ef372)
  hash[2]! ^= scramble(organizationGeneration + 0x1b873593)
}

export class Lookup<View extends Region = Region> {
  /**
   * Receives the words that prefetches read, so that the compiler does not remove those reads. The value has no other
   * use.
   */
  sink = 0
  readonly #store: LookupParts<View>
  /** The slabs of rows, by KIND. */
  readonly #slabs: readonly (Slab<View> | undefined)[]
  readonly #byKey: LinearHashTable
  readonly #byRule: LinearHashTable
  readonly #seed: number
  /** The secret that `findSecret` looks for. */
  readonly #secret = new Int32Array(CREDENTIAL_SECRET_WORDS)

  constructor(store: LookupParts<View>) {
    this.#store = store
    this.#byKey = store.byKey
    this.#byRule = store.byRule
    this.#seed = store.memory.shared.hashKey[0]! ^ store.memory.shared.hashKey[2]!
    const slabs: Slab<View>[] = []
    slabs[KIND_ORGANIZATION] = store.organizations
    slabs[KIND_CREDENTIAL] = store.credentials
    slabs[KIND_PRODUCT] = store.products
    slabs[KIND_CUSTOMER] = store.customers
    slabs[KIND_LICENSE] = store.licenses
    slabs[KIND_RULE] = store.rules
    this.#slabs = slabs
  }

  /** Returns the slab that contains the rows of a kind. */
  slab(kind: number): Slab<View> {
    const slab = this.#slabs[kind]
    if (slab === undefined) throw new Error(`There is no slab for rows of kind ${kind}.`)
    return slab
  }

  /** Returns the row with this id (16 bytes), or 0. */
  findId(kind: number, id: Uint8Array): number {
    const i0 = readWord(id, 0)
    const i1 = readWord(id, 4)
    const i2 = readWord(id, 8)
    const i3 = readWord(id, 12)
    const { byId } = this.#store
    const { region, rowWords } = this.slab(kind)
    const hash = hashWords(i0, i1, i2, i3, this.#seed + kind)
    for (let at = byId.first(hash); at !== NONE; at = byId.next(hash, at)) {
      const entry = byId.word(at, 1)
      if (entry >>> KIND_SHIFT !== kind) continue
      const row = entry & ROW_MASK
      const id0 = region.locate(row * rowWords + ID)
      const words = region.located
      if (words[id0] === i0 && words[id0 + 1] === i1 && words[id0 + 2] === i2 && words[id0 + 3] === i3) return row
    }
    return 0
  }

  addId(kind: number, row: number): void {
    this.#store.byId.insert(this.#idHash(kind, row), (kind << KIND_SHIFT) | row, 0)
  }

  removeId(kind: number, row: number): void {
    removeEntry(this.#store.byId, this.#idHash(kind, row), (kind << KIND_SHIFT) | row)
  }

  /** Prefetches the bucket that `findLicense` reads first. `hash` is the first word of the key's hash. */
  prefetchKey(hash: number): void {
    this.sink = this.#byKey.prefetch(hash)
  }

  /**
   * Returns the row that `findLicense` most likely finds, or 0. `hash` is the first word of the key's hash. The license in
   * the row may have another key with the same first word.
   */
  likelyLicense(hash: number): number {
    const at = this.#byKey.first(hash)
    return at === NONE ? 0 : this.#byKey.word(at, 1) & ROW_MASK
  }

  /**
   * Prefetches the record of a license, and the bucket of one of its machines. `machineHash` is the first word of the machine id's hash.
   */
  prefetchLicense(row: number, machineHash: number): void {
    const { licenses, machines } = this.#store
    this.sink = licenses.region.get(row * ROW_WORDS + LICENSE_KEY_HASH) ^ machines.prefetch(row, machineHash)
  }

  /**
   * Returns the row of the license with this key, or 0. `key` is the key's hash after `bindKey`. Unless `machineHash`
   * is null, also prefetches the bucket of that machine while the license's record is loading.
   */
  findLicense(key: Int32Array, machineHash: Int32Array | null): number {
    const byKey = this.#byKey
    const { licenses, machines } = this.#store
    const { region } = licenses
    const hash = key[0]!
    for (let at = byKey.first(hash); at !== NONE; at = byKey.next(hash, at)) {
      const entry = byKey.word(at, 1)
      if (entry >>> KIND_SHIFT !== BY_KEY) continue
      const row = entry & ROW_MASK
      if (machineHash !== null) this.sink = machines.prefetch(row, machineHash[0]!)
      const at0 = region.locate(row * ROW_WORDS + LICENSE_KEY_HASH)
      const words = region.located
      if (words[at0] === hash && words[at0 + 1] === key[1] && words[at0 + 2] === key[2]) return row
    }
    return 0
  }

  addLicenseKey(row: number): void {
    const hash = this.#store.licenses.region.get(row * ROW_WORDS + LICENSE_KEY_HASH)
    this.#byKey.insert(hash, (BY_KEY << KIND_SHIFT) | row, 0)
  }

  removeLicenseKey(row: number): void {
    const hash = this.#store.licenses.region.get(row * ROW_WORDS + LICENSE_KEY_HASH)
    removeEntry(this.#byKey, hash, (BY_KEY << KIND_SHIFT) | row)
  }

  /** Returns the row of the credential whose secret has this SHA-256 (32 bytes), or 0. */
  findSecret(secretHash: Uint8Array): number {
    const byKey = this.#byKey
    const secret = this.#secret
    for (let i = 0; i < CREDENTIAL_SECRET_WORDS; i++) secret[i] = readWord(secretHash, 4 * i)
    const words = this.#store.credentials.region
    const hash = secret[0]!
    for (let at = byKey.first(hash); at !== NONE; at = byKey.next(hash, at)) {
      const entry = byKey.word(at, 1)
      if (entry >>> KIND_SHIFT !== BY_SECRET) continue
      const row = entry & ROW_MASK
      if (secret.every((word, i) => words.get(row * ROW_WORDS + CREDENTIAL_SECRET + i) === word)) return row
    }
    return 0
  }

  addSecret(row: number): void {
    const hash = this.#store.credentials.region.get(row * ROW_WORDS + CREDENTIAL_SECRET)
    this.#byKey.insert(hash, (BY_SECRET << KIND_SHIFT) | row, 0)
  }

  removeSecret(row: number): void {
    const hash = this.#store.credentials.region.get(row * ROW_WORDS + CREDENTIAL_SECRET)
    removeEntry(this.#byKey, hash, (BY_SECRET << KIND_SHIFT) | row)
  }

  /**
   * Finds the rules of one scope and type with exactly this value. Writes their rows to `out` and returns the number of rows.
   */
  findRules(scope: number, type: number, v0: number, v1: number, v2: number, v3: number, out: Int32Array): number {
    const byRule = this.#byRule
    const { region } = this.#store.rules
    const hash = this.#valueHash(scope, type, v0)
    let count = 0
    for (let at = byRule.first(hash); at !== NONE && count < out.length; at = byRule.next(hash, at)) {
      const row = byRule.word(at, 1)
      const base = region.locate(row * ROW_WORDS)
      const words = region.located
      if (words[base + RULE_SCOPE] !== scope || ruleType(words[base + RULE_TRAITS]!) !== type) continue
      const value = base + RULE_VALUE
      if (words[value] !== v0 || words[value + 1] !== v1 || words[value + 2] !== v2) continue
      if (words[value + 3] === v3) out[count++] = row
    }
    return count
  }

  /** Prefetches the bucket that `findRules` reads first. */
  prefetchRules(scope: number, type: number, v0: number): void {
    this.sink = this.#byRule.prefetch(this.#valueHash(scope, type, v0))
  }

  addRule(row: number): void {
    this.#byRule.insert(this.#ruleHash(row), row, 0)
  }

  removeRule(row: number): void {
    removeEntry(this.#byRule, this.#ruleHash(row), row)
  }

  #idHash(kind: number, row: number): number {
    const { region, rowWords } = this.slab(kind)
    const at = region.locate(row * rowWords + ID)
    const words = region.located
    return hashWords(words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!, this.#seed + kind)
  }

  #ruleHash(row: number): number {
    const words = this.#store.rules.region
    const base = row * ROW_WORDS
    return this.#valueHash(
      words.get(base + RULE_SCOPE),
      ruleType(words.get(base + RULE_TRAITS)),
      words.get(base + RULE_VALUE),
    )
  }

  /**
   * Returns the hash of a rule's entry. Only the first word of the value is hashed: for a machine id, it is a word of a keyed hash, and a
   * country or customer has no other word.
   */
  #valueHash(scope: number, type: number, v0: number): number {
    return hashPair(v0, (scope << 3) | type, this.#seed)
  }
}

function removeEntry(table: LinearHashTable, hash: number, entry: number): void {
  for (let at = table.first(hash); at !== NONE; at = table.next(hash, at)) {
    if (table.word(at, 1) !== entry) continue
    table.remove(hash, at)
    return
  }
}
