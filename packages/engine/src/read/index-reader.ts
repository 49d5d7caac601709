/**
 * Reads an index, with one reader per thread. Every read runs under the seqlock and is repeated after a concurrent
 * write, so all parts of a result were in the index at the same moment.
 */

import type { Check, CredentialView, EntitlementsView, Verdict } from '../check.ts'
import { writeBytes } from '../memory/bits.ts'
import { openStore, type ReadStore } from '../memory/index-store.ts'
import { Journal } from '../memory/journal.ts'
import {
  CREDENTIAL_ORGANIZATION_SHIFT,
  CREDENTIAL_PRODUCT,
  CREDENTIAL_STATE,
  EXPIRY,
  EXTENSION_ENTITLEMENTS,
  EXTENSION_WORDS,
  GENERATION,
  ID,
  KIND_CREDENTIAL,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_EXTENSION,
  LICENSE_PRODUCT,
  ORGANIZATION_ADDRESS_RULES,
  PRODUCT_ENTITLEMENTS,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_MONITOR,
  RULE_TRAITS,
} from '../memory/layout.ts'
import { bindKey } from '../memory/lookup.ts'
import { MAX_ATTEMPTS, ReadLock } from '../memory/seqlock.ts'
import type { SharedIndex } from '../memory/shared-memory.ts'
import { decide } from './decide.ts'
import { RuleMatching } from './rule-matching.ts'

/** The result of a lookup when no row has this id, key or secret. */
export const UNKNOWN = -1
/** The result of a lookup when the writer was writing during each of MAX_ATTEMPTS attempts. */
export const BUSY = -2

/**
 * The number of words per check in the hashes of a batch: four for the hash of the key, four for the hash of the machine id, and one for
 * the row of the license to prefetch.
 */
export const HASH_WORDS = 9
const MACHINE_HASH = 4
const LIKELY_ROW = 8

interface ReaderOptions {
  /** Whether reads use the lock, true by default. */
  locked?: boolean
}

export class IndexReader {
  readonly #store: ReadStore
  readonly #matching: RuleMatching
  readonly #lock: ReadLock
  // Every check reuses these buffers, so that it allocates nothing.
  readonly #key = new Int32Array(4)
  readonly #machineHash = new Int32Array(4)

  constructor(shared: SharedIndex, options: ReaderOptions = {}) {
    this.#store = openStore(shared)
    this.#matching = new RuleMatching(this.#store)
    this.#lock = new ReadLock(this.#store.memory.control, new Journal(shared), options.locked ?? true)
  }

  /**
   * Decides a check at `nowMs` and writes the verdict. Does not change the index. `verdict.slot` states whether the caller must claim a
   * machine slot. Sets `verdict.busy` when the writer was writing during each of MAX_ATTEMPTS attempts.
   */
  decide(check: Check, nowMs: number, verdict: Verdict): void {
    const store = this.#store
    const key = this.#key
    const machineHash = this.#machineHash
    this.#hashKey(check.organization, check.licenseKey, check.licenseKeyLength, key)
    // The key's bucket is loaded from memory while the processor hashes the machine id.
    store.lookup.prefetchKey(key[0]!)
    const hasMachine = check.machineIdLength > 0
    if (hasMachine) store.hash.hash(check.machineId, check.machineIdLength, machineHash)
    verdict.machineHash0 = hasMachine ? machineHash[0]! : 0
    verdict.machineHash1 = hasMachine ? machineHash[1]! : 0
    this.#decideHashed(check, nowMs, verdict)
  }

  /**
   * Hashes the license key and the machine id of the check with the index `n` in a batch. Writes both hashes to `hashes`, from the word
   * `n * HASH_WORDS` on. `decideHashed` does not read the license key again.
   */
  hashCheck(check: Check, hashes: Int32Array, n: number): void {
    const key = this.#key
    const machineHash = this.#machineHash
    this.#hashKey(check.organization, check.licenseKey, check.licenseKeyLength, key)
    if (check.machineIdLength > 0) this.#store.hash.hash(check.machineId, check.machineIdLength, machineHash)
    else machineHash.fill(0)
    const at = n * HASH_WORDS
    for (let i = 0; i < 4; i++) {
      hashes[at + i] = key[i]!
      hashes[at + MACHINE_HASH + i] = machineHash[i]!
    }
  }

  /**
   * Prefetches the rows of the first `count` checks of a batch. Acquires no lock, because it only loads memory.
   *
   * Each loop loads the words that the next loop needs. The loops are short and use no result of their own loads, so the processor executes
   * many of their iterations at the same time and the loads overlap.
   */
  prefetchChecks(hashes: Int32Array, count: number): void {
    const { lookup } = this.#store
    const end = count * HASH_WORDS
    for (let at = 0; at < end; at += HASH_WORDS) lookup.prefetchKey(hashes[at]!)
    for (let at = 0; at < end; at += HASH_WORDS) hashes[at + LIKELY_ROW] = lookup.likelyLicense(hashes[at]!)
    for (let at = 0; at < end; at += HASH_WORDS)
      lookup.prefetchLicense(hashes[at + LIKELY_ROW]!, hashes[at + MACHINE_HASH]!)
  }

  /** Decides a check of a batch, as `decide` does, with the hashes that `hashCheck` wrote at position `n` of `hashes`. */
  decideHashed(check: Check, hashes: Int32Array, n: number, nowMs: number, verdict: Verdict): void {
    const key = this.#key
    const machineHash = this.#machineHash
    const at = n * HASH_WORDS
    for (let i = 0; i < 4; i++) {
      key[i] = hashes[at + i]!
      machineHash[i] = hashes[at + MACHINE_HASH + i]!
    }
    verdict.machineHash0 = machineHash[0]!
    verdict.machineHash1 = machineHash[1]!
    this.#decideHashed(check, nowMs, verdict)
  }

  /** Decides a check whose hashes are in `#key` and `#machineHash`. */
  #decideHashed(check: Check, nowMs: number, verdict: Verdict): void {
    const lock = this.#lock
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = lock.begin(attempt)
      if ((version & 1) !== 0) continue
      decide(this.#store, this.#matching, check, this.#key, this.#machineHash, nowMs, verdict)
      if (lock.unchanged(version)) return
    }
    verdict.busy = true
  }

  /**
   * Finds the license with this key in the organization with the row `organization`. Unless `product` is 0, the license must belong to the
   * product with that row. The key is the first `length` bytes of `licenseKey`. Writes the license's id (16 bytes) to `id` and returns its
   * row, or returns UNKNOWN or BUSY. Access rules and the license's state have no effect.
   */
  findLicense(organization: number, product: number, licenseKey: Uint8Array, length: number, id: Uint8Array): number {
    const { licenses, lookup, organizations } = this.#store
    const key = this.#key
    this.#hashKey(organization, licenseKey, length, key)
    return this.#read(() => {
      if (!organizations.region.words[organization * ROW_WORDS + GENERATION]) return UNKNOWN
      const row = lookup.findLicense(key, null)
      if (row === 0) return UNKNOWN
      if (product !== 0 && licenses.region.words[row * ROW_WORDS + LICENSE_PRODUCT] !== product) return UNKNOWN
      writeBytes(licenses.region, row * ROW_WORDS + ID, 4, id)
      return row
    })
  }

  /**
   * Returns whether the index contains the machine for the license in the row `license`. The machine id is the first `length` bytes of
   * `machineId`. Also returns false when the writer was writing during each of MAX_ATTEMPTS attempts.
   */
  hasMachine(license: number, machineId: Uint8Array, length: number): boolean {
    const { hash, licenses, machines } = this.#store
    const machineHash = this.#machineHash
    hash.hash(machineId, length, machineHash)
    return (
      this.#read(() => {
        const generation = licenses.region.words[license * ROW_WORDS + GENERATION]! | 0
        return generation !== 0 && machines.has(license, generation, machineHash) ? license : UNKNOWN
      }) === license
    )
  }

  /** Returns the row of the credential whose secret has this SHA-256 (32 bytes), or else UNKNOWN or BUSY. */
  findCredential(secretHash: Uint8Array): number {
    return this.#read(() => this.#store.lookup.findSecret(secretHash) || UNKNOWN)
  }

  /** Returns the row of the organization with this id (16 bytes), or else UNKNOWN or BUSY. */
  findOrganization(id: Uint8Array): number {
    return this.#read(() => this.#store.lookup.findId(KIND_ORGANIZATION, id) || UNKNOWN)
  }

  /** Returns the row of the product with this id (16 bytes), or else UNKNOWN or BUSY. */
  findProduct(id: Uint8Array): number {
    return this.#read(() => this.#store.lookup.findId(KIND_PRODUCT, id) || UNKNOWN)
  }

  /** Reads the credential in a row. Returns false when the row is free or the index is busy. */
  credential(row: number, out: CredentialView): boolean {
    const store = this.#store
    const lock = this.#lock
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = lock.begin(attempt)
      if ((version & 1) !== 0) continue
      const { words, doubles } = store.credentials.region
      const state = words[row * ROW_WORDS + CREDENTIAL_STATE]! | 0
      const organization = state >>> CREDENTIAL_ORGANIZATION_SHIFT
      out.generation = words[row * ROW_WORDS + GENERATION]! | 0
      out.organization = organization
      out.product = words[row * ROW_WORDS + CREDENTIAL_PRODUCT]! | 0
      out.expiresAtMs = doubles[row * ROW_DOUBLES + EXPIRY] ?? 0
      out.addressRules = store.organizations.region.words[organization * ROW_WORDS + ORGANIZATION_ADDRESS_RULES]! > 0
      if (lock.unchanged(version)) return out.generation !== 0
    }
    return false
  }

  /**
   * Reads the entitlements of the license in a row. `isKnown` receives the rows and generations of both values. If it returns true, the
   * bytes of the values are not read. Returns false when the row has another generation or the index is busy.
   */
  entitlements(
    row: number,
    generation: number,
    out: EntitlementsView,
    isKnown: (view: EntitlementsView) => boolean,
  ): boolean {
    const { extensions, licenses, products, values } = this.#store
    const read = (): number => {
      const { words } = licenses.region
      if (words[row * ROW_WORDS + GENERATION] !== generation) return UNKNOWN
      const product = words[row * ROW_WORDS + LICENSE_PRODUCT]!
      const extension = words[row * ROW_WORDS + LICENSE_EXTENSION]!
      out.product = products.region.words[product * ROW_WORDS + PRODUCT_ENTITLEMENTS]! | 0
      out.license = extensions.region.words[extension * EXTENSION_WORDS + EXTENSION_ENTITLEMENTS]! | 0
      out.productGeneration = values.generation(out.product)
      out.licenseGeneration = values.generation(out.license)
      if (isKnown(out)) return row
      out.productLength = out.product === 0 ? 0 : values.read(out.product, out.productBytes)
      out.licenseLength = out.license === 0 ? 0 : values.read(out.license, out.licenseBytes)
      return row
    }
    return this.#read(read) === row
  }

  /** Writes the id of the license in a row. Returns false when the row has another generation or the index is busy. */
  licenseId(row: number, generation: number, out: Uint8Array): boolean {
    return this.#id(KIND_LICENSE, row, generation, out)
  }

  /**
   * Writes the id of the credential in a row. Returns false when the row has another generation or the index is busy.
   */
  credentialId(row: number, generation: number, out: Uint8Array): boolean {
    return this.#id(KIND_CREDENTIAL, row, generation, out)
  }

  /** Writes the id of the product in a row. Returns false when the row has another generation or the index is busy. */
  productId(row: number, generation: number, out: Uint8Array): boolean {
    return this.#id(KIND_PRODUCT, row, generation, out)
  }

  /** Writes the id of the rule in a row. Returns false when the row has another generation or the index is busy. */
  ruleId(row: number, generation: number, out: Uint8Array): boolean {
    return this.#id(KIND_RULE, row, generation, out)
  }

  /** Returns whether the rule in a row is monitored. Only the writer's thread may call it, because it acquires no lock. */
  isMonitored(row: number): boolean {
    return (this.#store.rules.region.words[row * ROW_WORDS + RULE_TRAITS]! & RULE_MONITOR) !== 0
  }

  /** Writes the id of the organization in a row. Returns false when the row is free or the index is busy. */
  organizationId(row: number, out: Uint8Array): boolean {
    return this.#id(KIND_ORGANIZATION, row, undefined, out)
  }

  /**
   * Writes the hash of a license key to `out`, bound to the organization. Needs no lock, because an organization's generation is constant.
   */
  #hashKey(organization: number, licenseKey: Uint8Array, length: number, out: Int32Array): void {
    const { hash, organizations } = this.#store
    hash.hash(licenseKey, length, out)
    bindKey(out, organizations.region.words[organization * ROW_WORDS + GENERATION] ?? 0)
  }

  /** Writes the id of a row. Does not use `#read`, to avoid a closure for every recorded check. */
  #id(kind: number, row: number, generation: number | undefined, out: Uint8Array): boolean {
    const { region } = this.#store.lookup.slab(kind)
    const { words } = region
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = this.#lock.begin(attempt)
      if ((version & 1) !== 0) continue
      const found = words[row * ROW_WORDS + GENERATION]
      const isThere = found !== undefined && found !== 0 && (generation === undefined || found === generation)
      if (isThere) writeBytes(region, row * ROW_WORDS + ID, 4, out)
      if (this.#lock.unchanged(version)) return isThere
    }
    return false
  }

  /** Runs a lookup under the lock and returns its result, or BUSY. Most checks do not call it, because each call allocates a closure. */
  #read(find: () => number): number {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = this.#lock.begin(attempt)
      if ((version & 1) !== 0) continue
      const found = find()
      if (this.#lock.unchanged(version)) return found
    }
    return BUSY
  }
}

/** Opens an index for reading in this thread. */
export function openIndex(shared: SharedIndex, options?: ReaderOptions): IndexReader {
  return new IndexReader(shared, options)
}
